package iplb

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sublet/plan"
	"testing"
)

// What leaves is what the standards say, by an analyser's judgement: the
// headers are found in order down to the packet, without a warning.
func TestOthersCanReadIt(t *testing.T) {
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Skip("tshark is not installed")
	}
	tab := table(t)
	relays := []netip.Addr{relay1, relay2, relay3, netip.MustParseAddr("10.255.0.4")}
	sids := append(slices.Clone(segments), netip.MustParseAddr("fc00:4::1"))
	var frames [][]byte
	var want []string
	tab.Source6 = netip.MustParseAddr("fc00::1")
	for _, form := range []plan.Relaying{plan.ByIPIP, plan.ByGRE, plan.ByUDP, plan.BySRv6} {
		for n := 1; n <= len(relays); n++ {
			chosen := relays[:n]
			if form == plan.BySRv6 {
				chosen = sids[:n]
			}
			set(t, tab, plan.Spread{By: form, Paths: []plan.RelayPath{{Relays: chosen}}})
			for _, payload := range []int{1, 900} {
				in := packet(40000, payload)
				binary.BigEndian.PutUint16(in[36:], 40001)
				_, out := run(t, tab.Transmit(), in)
				frames = append(frames, out)
				want = append(want, map[plan.Relaying]string{
					plan.ByIPIP: "eth:ethertype" + strings.Repeat(":ip", n) + ":ip:udp:data",
					plan.ByGRE:  "eth:ethertype" + strings.Repeat(":ip:gre", n) + ":ip:udp:data",
					plan.ByUDP:  "eth:ethertype:ip:udp:data", // which nobody else knows
					plan.BySRv6: "eth:ethertype:ipv6:ipv6.routing:ip:udp:data",
				}[form])
			}
		}
	}
	probe := NewProbe(host, relays[:2], relay3, relays[:1], 1, 2)
	frames = append(frames, append(append(make([]byte, 12), 8, 0), probe.packet...))
	want = append(want, "eth:ethertype:ip:ip:ip:ip:ip:udp")
	for i, line := range analysed(t, frames) {
		fields := strings.SplitN(line, ";", 3)
		if !strings.HasPrefix(fields[0], want[i]) {
			t.Errorf("tshark reads %s, not %s", fields[0], want[i])
		}
		const note = 0x00400000 // severities above are warnings and errors
		for severity := range strings.SplitSeq(fields[1], ",") {
			var level int
			if _, err := fmt.Sscan(severity, &level); err == nil && level > note {
				t.Errorf("%s: tshark warns: %s", want[i], line)
			}
		}
	}
}

// analysed is a line for each frame: protocols; severities; messages.
func analysed(t *testing.T, frames [][]byte) []string {
	t.Helper()
	file := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4) // pcap-savefile(5)
	file = append(file, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0)
	for _, f := range frames {
		file = append(file, make([]byte, 8)...)
		file = binary.LittleEndian.AppendUint32(file, uint32(len(f)))
		file = append(binary.LittleEndian.AppendUint32(file, uint32(len(f))), f...)
	}
	path := filepath.Join(t.TempDir(), "all.pcap")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("tshark", "-r", path, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE",
		"-T", "fields", "-e", "frame.protocols", "-e", "_ws.expert.severity", "-e", "_ws.expert.message", "-E", "separator=;").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(frames) {
		t.Fatalf("tshark reads %d packets of %d", len(lines), len(frames))
	}
	return lines
}
