package ofswitch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// mixed makes a switch of ports of all kinds, and what is at their far ends: AF_XDP
// sockets, AF_XDP sockets, a TAP device, a packet socket.
func mixed(t *testing.T, change func(*Config)) (c *controller, far []*device) {
	t.Helper()
	ends := wires(t)
	config := Config{Pipeline: pipeline.Config{DatapathID: 0xabc, Tables: 4, Entries: 100, Groups: 4, Meters: 4}, Ports: []string{"xdp:p1", "xdp:p2", "tap:t3", "packet:p3"}}
	change(&config)
	c, _ = started(t, config)
	tap, err := openDevice("t3", 0, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(tap.fd) })
	for _, name := range []string{"p1", "p2", "t3"} { // a program at a device may take its carrier away for a moment
		carries(t, name)
	}
	return c, []*device{ends[0], ends[1], tap, ends[2]}
}

// comes waits for a frame with a beginning: stacks at the far ends may say something.
func comes(d *device, begin []byte) []byte {
	for range 100 {
		if b := arrives(d, 5*time.Second); b == nil || bytes.HasPrefix(b, begin) {
			return b
		}
	}
	return nil
}

// What ports of any kind receive leaves by any other, as it came, and is counted.
func TestPortsOfAllKinds(t *testing.T) {
	if !within(t) {
		return
	}
	c, far := mixed(t, func(*Config) {})
	const rounds = 20
	for from := range far {
		for to := range far {
			if from == to {
				continue
			}
			c.send(output(uint32(to+1), of13.Exact(of13.InPort, uint64(from+1))), &of13.Plain{Kind: of13.TypeBarrierRequest})
			c.want(of13.TypeBarrierReply)
			for round := range rounds {
				frame := frameOf(0x81, 0, 0x60, 9, 0x88, 0xb5, byte(from), byte(to), byte(round))
				far[from].write(frame, nil)
				if got := comes(far[to], frame[:21]); !bytes.Equal(got, frame) {
					t.Fatalf("from port %d to port %d: %x", from+1, to+1, got)
				}
			}
		}
	}
	c.send(&of13.MultipartRequest{Kind: of13.MultipartPort, Number: of13.PortAny})
	for _, p := range c.want(of13.TypeMultipartReply).(*of13.MultipartReply).Ports {
		if p.RxPackets < 3*rounds || p.TxPackets < 3*rounds || p.Port < 3 && p.RxPackets != 3*rounds {
			t.Errorf("%+v", p)
		}
	}
}

// Checksums that senders leave undone are whole behind the switch, and segments that
// are still to be cut are cut where an AF_XDP port cannot tell of them.
func TestOffloadsOfPorts(t *testing.T) {
	if !within(t) {
		return
	}
	c, far := mixed(t, func(*Config) {})
	tag := []of13.Action{{Type: of13.ActionPushVLAN, EtherType: 0x8100}, of13.Output(2)}
	for _, in := range []int{0, 2, 3} {
		e := output(2, of13.Exact(of13.InPort, uint64(in+1)))
		e.Instructions[0].Actions = tag
		c.send(e)
	}
	c.send(&of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply)
	want := segment(t, 2, 80)
	tagged := append(append(bytes.Clone(want[:12]), 0x81, 0, 0, 0), want[12:]...)
	for _, in := range []int{0, 2, 3} {
		frame, header := unfinished(t, 2, 80)
		writeAs(t, far[in], header, frame)
		if got := comes(far[1], tagged[:18]); !bytes.Equal(got, tagged) {
			t.Errorf("from port %d: %x instead of %x", in+1, got, tagged)
		}
	}
	for _, in := range []int{2, 3} {
		frame, header := unfinished(t, 2, 80)
		for len(frame) < 54+3000 {
			frame = append(frame, byte(len(frame)))
		}
		binary.BigEndian.PutUint16(frame[16:], uint16(len(frame)-14))
		binary.BigEndian.PutUint16(frame[24:], 0)
		binary.BigEndian.PutUint16(frame[24:], ^fold(sum(frame[14:34])))
		binary.BigEndian.PutUint16(frame[atTCP+16:], fold(sum(frame[26:34])+6+uint64(len(frame)-atTCP)))
		header[1] = 1 // VIRTIO_NET_HDR_GSO_TCPV4
		binary.NativeEndian.PutUint16(header[2:], 54)
		binary.NativeEndian.PutUint16(header[4:], 1000)
		writeAs(t, far[in], header, frame)
		for part := range 3 {
			got := comes(far[1], tagged[:16])
			if len(got) != 58+1000 || !bytes.Equal(got[58:], frame[54+1000*part:][:1000]) {
				t.Fatalf("part %d of a segment from port %d has %d bytes: %x", part, in+1, len(got), got[:min(len(got), 64)])
			}
			if left := fold(sum(got[30:38]) + 6 + uint64(len(got)-38) + sum(got[38:])); left != 0xffff {
				t.Errorf("part %d of a segment from port %d has a wrong checksum: %x", part, in+1, left)
			}
		}
	}
}

// writeAs sends a frame with a virtio header.
func writeAs(t *testing.T, d *device, header [virtio]byte, frame []byte) {
	t.Helper()
	if _, err := unix.Write(d.fd, append(header[:], frame...)); err != nil {
		t.Fatal(err)
	}
}

// Several hundred frames at a time go through AF_XDP ports in their order.
func TestBurstsThroughXDP(t *testing.T) {
	if !within(t) {
		return
	}
	c, far := mixed(t, func(*Config) {})
	c.send(output(2, of13.Exact(of13.InPort, 1)), &of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply)
	for burst := range 20 {
		const size = 200 // the ring has room for more
		for i := range size {
			far[0].write(frameOf(0x88, 0xb5, byte(burst), byte(i)), nil)
		}
		for i := range size {
			begin := frameOf(0x88, 0xb5, byte(burst), byte(i))[:16]
			if got := arrives(far[1], 10*time.Second); !bytes.HasPrefix(got, begin) {
				t.Fatalf("burst %d, frame %d: %x", burst, i, got)
			}
		}
	}
}

// A switch that ends leaves neither program nor TAP device, and another one can have
// the ports at once.
func TestPortsLeaveNothing(t *testing.T) {
	if !within(t) {
		return
	}
	wires(t)
	for range 3 {
		s, err := New(Config{Pipeline: pipeline.Config{Tables: 1, Entries: 1}, Ports: []string{"xdp:p1", "tap:t1"}, Log: func(err error) { t.Log(err) }})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		out, err := exec.Command("ip", "link").CombinedOutput()
		if err != nil || strings.Contains(string(out), "xdp") || strings.Contains(string(out), "t1:") {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

func TestPortsThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"xdp:": "no name", "tap:a/b": "no name", "tun:a": "xdp:DEVICE", "tap:abcdefghijklmnop": "no name", "tap:a%d": "no name", ":a": "xdp:DEVICE",
	} {
		if _, err := ParsePort(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, c := range []Config{{Kernel: true}, {InBand: &InBand{}}} {
		for kind, fine := range map[PortKind]bool{PortPacket: true, PortXDP: false, PortTAP: false} {
			c.Ports = []string{fmt.Sprintf("%s:a", kind)}
			if err := c.Suits(); (err == nil) != fine {
				t.Errorf("%+v: %v", c, err)
			}
		}
	}
}

// Threads run on the processors that were named.
func TestPin(t *testing.T) {
	if !within(t) { // a process of its own
		return
	}
	var may, has unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		t.Fatal(err)
	}
	first := 0
	for !may.IsSet(first) {
		first++
	}
	if err := errors.Join(Pin([]int{first}), unix.SchedGetaffinity(0, &has)); err != nil {
		t.Fatal(err)
	}
	if has.Count() != 1 || !has.IsSet(first) {
		t.Errorf("%v", has)
	}
	if err := Pin([]int{first, 1023}); err == nil {
		t.Error("there is a processor 1023")
	}
}
