package test

import (
	"fmt"
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
        print("NSH", at[0], place >> 8, place & 255, flush=True)
        f[14:22] = struct.pack("!II", base, place - int(sys.argv[1]))
        s["eth1" if at[0] == "eth0" else "eth0"].send(f)`

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
	const socket = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, 11, 1) # no checksum, which a function would have to finish\n"
	s.must("exec", "-d", "aware/b", "--", "python3", "-c", socket+"s.bind(('', 9000))\nwhile True: s.sendto(*s.recvfrom(2000))")
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: "aware"}, "b")
	pings := func() error {
		return s.runs("exec", "aware/a", "--", "python3", "-c", socket+fmt.Sprintf("s.settimeout(2); s.connect((%q, 9000))\nfor _ in range(2): s.send(bytes(1300)); assert len(s.recv(2000)) == 1300", address))
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
