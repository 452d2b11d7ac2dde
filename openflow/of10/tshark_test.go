package of10

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"sublet/openflow/of13"
)

// Wireshark's dissector finds the types that were written, and nothing malformed.
func TestDissectorReadsMessages(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	list := samples()
	path := capture(t, list)
	out, err := exec.Command(tshark, "-n", "-r", path, "-d", "tcp.port==6653,openflow", "-o", "tcp.desegment_tcp_streams:FALSE",
		"-T", "fields", "-E", "separator=|", "-e", "openflow_1_0.type", "-e", "_ws.malformed", "-e", "_ws.expert.message").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(list) {
		t.Fatalf("%d packets of %d", len(lines), len(list))
	}
	for i, line := range lines {
		columns := strings.Split(line, "|")
		wire, _ := wireKind(list[i].Type())
		kind, _, _ := strings.Cut(columns[0], ",") // an error has the header of what it is about
		if kind != fmt.Sprint(wire) || columns[1] != "" || strings.Contains(columns[2], "nvalid") {
			t.Errorf("%s\nis read as %s", printed(list[i]), line)
		}
	}
}

// capture writes messages as segments of a TCP connection to a pcap file.
func capture(t *testing.T, list []of13.Message) string {
	path := filepath.Join(t.TempDir(), "messages.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := pcapgo.NewWriter(f)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	seq := uint32(1)
	for _, m := range list {
		b := encode(t, m)
		frame := segment(t, seq, b)
		seq += uint32(len(b))
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(frame), Length: len(frame)}, frame); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func segment(t *testing.T, seq uint32, payload []byte) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}}
	tcp := &layers.TCP{SrcPort: 40000, DstPort: 6653, Seq: seq, ACK: true, PSH: true, Window: 1000}
	tcp.SetNetworkLayerForChecksum(ip)
	eth := &layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, tcp, gopacket.Payload(payload)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
