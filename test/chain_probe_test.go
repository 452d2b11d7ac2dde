package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// A program that is sent a probe may drop all packets of its chain on purpose, and is
// not taken for dead. When it is killed it is found out though no packets come, and
// when it runs again, too.
func TestFunctionsAreProbed(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(`network: probed
nodes:
  - {name: a, host: h1}
  - {name: b, host: h1}
functions:
  - {name: ids, host: h2, run: [sleep, infinity], probe: true}
links:
  - {ends: [a, b], rate: 50Mbit}
chains:
  - {name: strict, from: a, to: b, match: {proto: udp, dst_port: 9000}, via: [ids], rate: 5Mbit, on-failure: drop}
`)
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: "probed"}, "b")
	ids := func() (h report.ChainHop) {
		for _, h = range s.hops("probed") {
			if h.Hop == "ids" {
				return h
			}
		}
		t.Fatalf("no hop of ids: %+v", s.hops("probed"))
		return h
	}
	lives := func(want bool) {
		t.Helper()
		eventually(t, time.Minute, func() error {
			if h := ids(); h.Dead == want {
				return fmt.Errorf("it lives: %t: %+v", !want, h)
			}
			return nil
		})
	}
	runs := func() {
		s.must("exec", "-d", "probed/ids", "--", "python3", "-c", strings.Replace(passer, "!= 4:", "!= 4 and f[36:38] != (9000).to_bytes(2, 'big'):", 1))
	}
	runs()
	s.must("exec", "-d", "probed/a", "--", "python3", "-c", fmt.Sprintf(`
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True: s.sendto(bytes(200), (%q, 9000)); time.sleep(0.005)`, address))
	began := ids()
	eventually(t, time.Minute, func() error {
		h := ids()
		if h.Dead || h.Drops["dead"] > began.Drops["dead"] {
			began = h // before it ran, or while nothing ran at all
		}
		if h.Packets < began.Packets+600 {
			return fmt.Errorf("%d packets were for it since it was dead", h.Packets-began.Packets)
		}
		return nil
	})
	s.must("exec", "probed/a", "--", "pkill", "-9", "python3")
	s.must("exec", "probed/ids", "--", "pkill", "-9", "python3")
	idle := ids()
	lives(false)
	if h := ids(); h.Packets > idle.Packets+20 {
		t.Errorf("%d packets were for it while none should come", h.Packets-idle.Packets)
	}
	eventually(t, time.Minute, func() error {
		if events := s.must("events", "probed"); !strings.Contains(events, "function ids returns nothing") {
			return fmt.Errorf("nothing says that it died: %s", events)
		}
		return nil
	})
	runs()
	lives(true)
	s.must("down", "probed")
}
