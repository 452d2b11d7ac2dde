package sim

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

const line1 = `{"time_ns":5,"virtual_switch":"a","input":1,"output":2,"size_bytes":64}`

func TestReadTrace(t *testing.T) {
	s := small()
	for name, c := range map[string]struct{ text, want string }{
		"good":           {line1 + "\n\n" + strings.Replace(line1, ":5", ":5", 1), ""},
		"departures":     {`{"point":0,"run":0,"time_ns":5,"virtual_switch":"b","input":1,"output":2,"size_bytes":64,"sequence":7,"arrival_ns":3}`, ""},
		"not JSON":       {"time", "line 1: is no packet"},
		"unknown field":  {strings.Replace(line1, "size_bytes", "size", 1), `unknown field "size"`},
		"missing field":  {`{"time_ns":5}`, "lacks a field"},
		"unknown switch": {strings.Replace(line1, `"a"`, `"z"`, 1), `virtual switch "z"`},
		"no such port":   {strings.Replace(line1, `"output":2`, `"output":3`, 1), "port 1 to 3"},
		"no size":        {strings.Replace(line1, "64", "0", 1), "size_bytes 0"},
		"negative time":  {strings.Replace(line1, ":5", ":-5", 1), "time_ns -5"},
		"out of order":   {line1 + "\n" + strings.Replace(line1, ":5", ":4", 1), "line 2: is earlier"},
		"another run":    {strings.Replace(line1, "{", `{"run":1,`, 1), "another run"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadTrace(strings.NewReader(c.text), s)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: got %v, want %q", name, err, c.want)
			}
		})
	}
}

// What a Writer writes, ReadTrace reads; numbers of all lines are kept.
func TestTraceComesBack(t *testing.T) {
	s := small()
	arrivals := all(s, 1)
	for i := range arrivals {
		arrivals[i].Sequence += 1000
	}
	var b bytes.Buffer
	w, err := NewWriter(&b, s, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range arrivals {
		w.Arrived(&arrivals[i])
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	got, err := ReadTrace(&b, s)
	if err != nil || len(got) != len(arrivals) {
		t.Fatalf("%d packets, %v; want %d", len(got), err, len(arrivals))
	}
	for i := range got {
		if got[i] != arrivals[i] {
			t.Fatalf("packet %d: wrote %v, read %v", i, arrivals[i], got[i])
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add(line1 + "\n" + line1)
	f.Fuzz(func(t *testing.T, text string) {
		s := small()
		list, err := ReadTrace(strings.NewReader(text), s)
		for i, a := range list {
			if err == nil && (a.Size < 1 || int(a.Switch) >= len(s.VirtualSwitches) || a.Input < 1 || int(a.Input) > s.Switch.Ports || i > 0 && a.At < list[i-1].At) {
				t.Errorf("accepted %v", a)
			}
		}
	})
}

func FuzzReadPcap(f *testing.F) {
	f.Add(capture(f, 3))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ReadPcap(bytes.NewReader(text))
		for i, p := range list {
			if err == nil && (p.Size < 1 || i > 0 && p.At < list[i-1].At) {
				t.Errorf("accepted %v", p)
			}
		}
	})
}

// capture makes a pcap file of UDP packets, one a millisecond, whose ports
// alternate between two flows; half of each packet is captured.
func capture(t testing.TB, packets int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	if err := w.WriteFileHeader(100, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for n := range packets {
		data := gopacket.NewSerializeBuffer()
		ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 9, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}}
		udp := &layers.UDP{SrcPort: layers.UDPPort(1000 + n%2), DstPort: 9}
		err := gopacket.SerializeLayers(data, gopacket.SerializeOptions{FixLengths: true},
			&layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: layers.EthernetTypeIPv4}, ip, udp, gopacket.Payload(make([]byte, 20)))
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(1000, int64(n)*int64(time.Millisecond))
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(data.Bytes()), Length: 500 + n}, data.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestReadPcap(t *testing.T) {
	list, err := ReadPcap(bytes.NewReader(capture(t, 4)))
	if err != nil || len(list) != 4 {
		t.Fatalf("%v, %v", list, err)
	}
	for n, f := range list {
		if f.At != time.Duration(n)*time.Millisecond || int(f.Size) != 500+n || f.Flow != list[n%2].Flow {
			t.Errorf("packet %d is %+v", n, f)
		}
	}
	if list[0].Flow == list[1].Flow {
		t.Error("two flows are one")
	}
	if _, err := ReadPcap(strings.NewReader("hello")); err == nil {
		t.Error("read what is no pcap file")
	}
}

// A capture is replayed at its times, and a flow goes to one output.
func TestReplay(t *testing.T) {
	s := small()
	frames, err := ReadPcap(bytes.NewReader(capture(t, 10)))
	if err != nil {
		t.Fatal(err)
	}
	s.Traffic[0] = Traffic{Inputs: []int{2}, Outputs: []int{1, 2}, Weights: []float64{0, 1}, Replay: frames, Start: time.Millisecond}
	list := all(s, 1)
	if len(list) != 10 {
		t.Fatalf("%d packets", len(list))
	}
	for n, a := range list {
		if a.At != time.Duration(n+1)*time.Millisecond || a.Switch != 1 || a.Input != 2 || a.Output != list[n%2].Output || int(a.Size) != 500+n {
			t.Errorf("packet %d arrives as %+v", n, a)
		}
	}
}
