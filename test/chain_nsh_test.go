package test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// nshFunction is a function that knows NSH. What comes by one of its interfaces leaves by
// the other one with an index that is so much lower.
const nshFunction = `
import select, socket, struct, sys
s = {}
for n in ("eth0", "eth1"): s[n] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x894f)); s[n].bind((n, 0x894f))
while True:
    for i in select.select(list(s.values()), [], [])[0]:
        f, at = i.recvfrom(65536)
        if at[2] == 4: continue # what leaves
        f = bytearray(f); base, place = struct.unpack("!II", f[14:22])
        print("NSH", at[0], place >> 8, place & 255, "metadata", base >> 8 & 15, f[22:14 + (base >> 16 & 63) * 4].hex(), flush=True)
        f[14:22] = struct.pack("!II", base, place - int(sys.argv[1]))
        s["eth1" if at[0] == "eth0" else "eth0"].send(f)`

// noChecksum begins a program of Python with a socket of UDP without checksums, which a
// function would have to finish.
const noChecksum = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, 11, 1)\n"

// A program that knows NSH gets packets of a chain over two hosts and of its way back
// with the header, and they go on as it says. Those with a wrong index are dropped and
// counted.
func TestFunctionOfChainsKnowsNSH(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(`network: aware
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
functions:
  - {name: fw, host: h1, kind: firewall, rules: [{deny: {proto: tcp}}]}
  - {name: dpi, host: h2, nsh: aware, run: [sleep, infinity]}
links:
  - {ends: [a, b], rate: 50Mbit}
chains:
  - {name: echo, from: a, to: b, match: {proto: udp, dst_port: 9000}, via: [fw, dpi], rate: 10Mbit, reverse: mirror}
`)
	s.must("exec", "-d", "aware/b", "--", "python3", "-c", noChecksum+"s.bind(('', 9000))\nwhile True: s.sendto(*s.recvfrom(2000))")
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: "aware"}, "b")
	pings := func() error {
		return s.runs("exec", "aware/a", "--", "python3", "-c", noChecksum+fmt.Sprintf("s.settimeout(2); s.connect((%q, 9000))\nfor _ in range(2): s.send(bytes(1300)); assert len(s.recv(2000)) == 1300", address))
	}
	s.must("exec", "-d", "aware/dpi", "--", "python3", "-c", nshFunction, "1")
	eventually(t, time.Minute, pings)
	if came := s.came("aware", "dpi"); came < 4 {
		t.Errorf("%d packets came to the function", came)
	}
	if log := s.must("logs", "aware/dpi"); !strings.Contains(log, "NSH eth0 ") || !strings.Contains(log, "NSH eth1 ") {
		t.Errorf("the function read %q", log)
	}
	s.must("exec", "aware/dpi", "--", "pkill", "-9", "python3")
	s.must("exec", "-d", "aware/dpi", "--", "python3", "-c", nshFunction, "2")
	eventually(t, time.Minute, func() error {
		if pings() == nil {
			t.Fatal("packets with a wrong index arrive")
		}
		for _, h := range s.hops("aware") {
			if h.Hop == "dpi" && h.Drops["wrong-index"] >= 2 {
				return nil
			}
		}
		return fmt.Errorf("wrong indexes are not counted: %+v", s.hops("aware"))
	})
	s.asPlanned("h1", "h2")
	s.must("down", "aware")
}

// What a request states as metadata of a chain comes to a program that knows NSH, behind the
// queue of the rate, another host and a program that knows none, both ways. A change of it
// reaches packets; one that takes another number of bytes is refused, as is what is none.
func TestMetadataOfChains(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	request := func(metadata string) string {
		return fmt.Sprintf(`network: told
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
functions:
  - name: plain
    host: h1
    run: `+passesBothWays+`
  - {name: dpi, host: h2, nsh: aware, run: [sleep, infinity]}
links:
  - {ends: [a, b], rate: 50Mbit}
chains:
  - {name: echo, from: a, to: b, match: {proto: udp, dst_port: 9000}, via: [plain, dpi], rate: 10Mbit, reverse: mirror, metadata: %s}
`, metadata)
	}
	s.up(request(`{tlvs: [{class: 0xfff6, type: 5, value: "010203040506"}, {class: 0xfff6, type: 6}]}`))
	s.must("exec", "-d", "told/b", "--", "python3", "-c", noChecksum+"s.bind(('', 9000))\nwhile True: s.sendto(*s.recvfrom(2000))")
	s.must("exec", "-d", "told/dpi", "--", "python3", "-c", nshFunction, "1")
	reads := func(metadata string) {
		t.Helper()
		eventually(t, time.Minute, func() error {
			if err := s.runs("exec", "told/a", "--", "python3", "-c", noChecksum+"s.settimeout(2); s.sendto(bytes(1300), ('b', 9000)); assert len(s.recv(2000)) == 1300"); err != nil {
				return err
			}
			for _, from := range []string{"eth0", "eth1"} {
				if log := s.must("logs", "told/dpi"); !regexp.MustCompile("NSH " + from + " [0-9]+ [0-9]+ metadata " + metadata + "\n").MatchString(log) {
					return fmt.Errorf("by %s the function read %q", from, log)
				}
			}
			return nil
		})
	}
	reads("2 fff60506010203040506" + "0000" + "fff60600")
	s.must("apply", s.file("told", request(`{tlvs: [{class: 0xfff6, type: 7, value: "0a0b0c0d0e0f"}, {class: 0xfff6, type: 6}]}`)))
	reads("2 fff607060a0b0c0d0e0f" + "0000" + "fff60600")
	apply := func(metadata string) (said result) {
		t.Helper()
		eventually(t, time.Minute, func() error {
			if said = s.sublet("apply", s.file("told", request(metadata))); said.code == 5 { // the former form is still there
				return errors.New(said.err)
			}
			return nil
		})
		return said
	}
	if said := apply("{words: [1, 2, 3, 0xfffffff0]}"); said.code != 0 {
		t.Fatal(said.err)
	}
	reads("1 000000010000000200000003fffffff0")
	for metadata, says := range map[string]string{
		`{tlvs: [{class: 1, type: 2}]}`:                                            "takes 4 bytes, and took 16",
		"{words: [1, 2]}":                                                          "2 words are not 4",
		"{words: [1, 2, 3, 0x100000000]}":                                          "words",
		"{words: [1, 2, 3, 4], tlvs: [{class: 1, type: 2}]}":                       "keep one of them",
		`{tlvs: [{class: 1, type: 2, value: "0x1"}]}`:                              "two digits of base 16",
		`{tlvs: [{class: 1, type: 2, value: "` + strings.Repeat("00", 61) + `"}]}`: "take 68 bytes",
	} {
		if said := apply(metadata); said.code != 2 || !strings.Contains(said.err, says) || strings.Count(said.err, "\n") != 1 {
			t.Errorf("metadata %s: exit code %d, %s", metadata, said.code, said.err)
		}
	}
	s.asPlanned("h1", "h2")
	s.must("down", "told")
}
