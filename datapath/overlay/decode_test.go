package overlay

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// realFrames are frames as nodes send them, with right lengths and checksums.
func realFrames(t *testing.T) map[string][]byte {
	t.Helper()
	ether := func(kind layers.EthernetType) *layers.Ethernet {
		return &layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: kind}
	}
	v4 := func(next layers.IPProtocol) *layers.IPv4 {
		return &layers.IPv4{Version: 4, TTL: 64, Protocol: next, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}, Flags: layers.IPv4DontFragment}
	}
	v6 := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: addr16(1), DstIP: addr16(2)}
	udp := func(ip gopacket.NetworkLayer) *layers.UDP {
		u := &layers.UDP{SrcPort: 40000, DstPort: 40001}
		check1(t, u.SetNetworkLayerForChecksum(ip))
		return u
	}
	ip := v4(layers.IPProtocolUDP)
	tcpIP := v4(layers.IPProtocolTCP)
	tcp := &layers.TCP{SrcPort: 40000, DstPort: 40001, SYN: true, Window: 1000, Seq: 1}
	check1(t, tcp.SetNetworkLayerForChecksum(tcpIP))
	return map[string][]byte{
		"udp4": made(t, ether(layers.EthernetTypeIPv4), ip, udp(ip), gopacket.Payload("hello")),
		"udp6": made(t, ether(layers.EthernetTypeIPv6), v6, udp(v6), gopacket.Payload("hello")),
		"tcp":  made(t, ether(layers.EthernetTypeIPv4), tcpIP, tcp),
		"big":  made(t, ether(layers.EthernetTypeIPv4), ip, udp(ip), gopacket.Payload(make([]byte, 1300))),
		"arp": made(t, ether(layers.EthernetTypeARP), &layers.ARP{AddrType: 1, Protocol: 0x800, HwAddressSize: 6, ProtAddressSize: 4, Operation: 1,
			SourceHwAddress: []byte{2, 0, 0, 0, 0, 1}, SourceProtAddress: []byte{10, 0, 0, 1}, DstHwAddress: make([]byte, 6), DstProtAddress: []byte{10, 0, 0, 2}}),
	}
}

func addr16(last byte) []byte {
	a := netip.AddrFrom16([16]byte{0: 0xfd, 15: last})
	return a.AsSlice()
}

func made(t *testing.T, all ...gopacket.SerializableLayer) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	check1(t, gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...))
	return append([]byte(nil), b.Bytes()...)
}

// What leaves is what the standards say, by an analyser's judgement: no
// malformed packet, no warning, and the inner packet is found where one knows
// the protocol.
func TestOthersCanReadIt(t *testing.T) {
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Skip("tshark is not installed")
	}
	b := newBank(t)
	b.everything()
	var file []byte
	var want []string
	for id, o := range b.items {
		for name, frame := range realFrames(t) {
			v := b.send(id, frame)
			if v.code != tcxRedirect {
				continue // not carried, or no way
			}
			file = appendPacket(file, v.frame)
			want = append(want, fmt.Sprintf("%s %s by %s", o.Protocol, name, o.Remote))
		}
	}
	path := filepath.Join(t.TempDir(), "all.pcap")
	check1(t, os.WriteFile(path, append(pcapHeader(), file...), 0o600))
	// No checksum over IPv6 is what RFC 6935 allows tunnels; tshark has to be told.
	out, err := exec.Command("tshark", "-r", path, "-o", "udp.ignore_ipv6_zero_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE",
		"-T", "fields", "-e", "frame.protocols", "-e", "_ws.expert.severity", "-e", "_ws.expert.message", "-E", "separator=;").Output()
	check1(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(want) {
		t.Fatalf("tshark reads %d packets of %d", len(lines), len(want))
	}
	const note = 0x00400000 // severities above are warnings and errors
	for i, line := range lines {
		fields := strings.SplitN(line, ";", 3)
		for severity := range strings.SplitSeq(fields[1], ",") {
			var level int
			if _, err := fmt.Sscan(severity, &level); err == nil && level > note {
				t.Errorf("%s: tshark warns: %s", want[i], line)
			}
		}
		inside := map[string]string{"udp4": ":ip:udp:data", "udp6": ":ipv6:udp:data", "tcp": ":ip:tcp", "big": ":ip:udp:data", "arp": ":arp"}
		what := strings.Fields(want[i])
		if end := inside[what[1]]; !strings.HasSuffix(fields[0], end) && what[0] != "gue" { // which tshark does not know
			t.Errorf("%s: tshark reads %s, not ...%s", want[i], fields[0], end)
		}
	}
}

// pcapHeader begins a file of Ethernet frames (pcap-savefile(5)).
func pcapHeader() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0)
	return append(b, 1, 0, 0, 0)
}

func appendPacket(b, frame []byte) []byte {
	b = append(b, make([]byte, 8)...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frame)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frame)))
	return append(b, frame...)
}
