package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// Whatever a tenant offers above a chain's rate, in large packets, small ones or bursts,
// what the rate lets pass arrives over two hosts, and the chain is not called broken. While
// a stage pauses it, the proof says so.
func TestChainIsProved(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(changing("fw, most", "5Mbit", "81", `stages:
  - {name: "off", begins: command, chains: {web: {paused: true}}}
  - {name: "on", begins: command, chains: {web: {paused: false}}}
`))
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: "live"}, "b")
	proof := func() vnet.Proof {
		for _, p := range decode[[]vnet.Proof](t, s.must("proof", "live", "-o", "json")) {
			if p.Link == vnet.ChainWay("web") {
				return p
			}
		}
		return vnet.Proof{}
	}
	s.must("stage", "live", "off")
	eventually(t, time.Minute, func() error {
		if said := s.must("proof", "live"); !proof().ChainPaused || !strings.Contains(said, "paused") {
			return fmt.Errorf("of a paused chain: %s", said)
		}
		return nil
	})
	s.must("stage", "live", "on")
	tested := 0
	for i, c := range []struct{ size, mbit, burst int }{{1400, 8, 1}, {60, 8, 10}, {1400, 5, 40}} {
		s.must("exec", "-d", "live/a", "--", "python3", "-c", fmt.Sprintf(`
import os, socket, time
size, burst, many = %[2]d, %[3]d, []
for _ in range(8): # what waits in the queue counts against the socket that sent it
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect((%[1]q, 9000)); s.setblocking(False); many.append(s)
at = time.monotonic(); end = at + 60
while time.monotonic() < end and not os.path.exists("/tmp/stop%[4]d"):
    for _ in range(burst):
        many.append(many.pop(0))
        try: many[0].send(bytes(size))
        except OSError: pass
    at = max(at + (size + 42) * burst * 8 / %[5]de6, time.monotonic() - 1); time.sleep(max(0, at - time.monotonic()))`, address, c.size, c.burst, i, c.mbit))
		eventually(t, 50*time.Second, func() error {
			if p := proof(); p.Tested < tested+2 {
				return fmt.Errorf("%+v: tested are %d s, %d before: %+v", c, p.Tested, tested, p.Runs)
			}
			return nil
		})
		s.must("exec", "live/a", "--", "touch", fmt.Sprintf("/tmp/stop%d", i))
		eventually(t, time.Minute, func() error { // until the queue is empty
			if passed, arrived := s.came("live", "fw"), s.came("live", "out"); passed == 0 || passed != arrived {
				return fmt.Errorf("%+v: %d packets passed the rate, and %d arrived", c, passed, arrived)
			}
			return nil
		})
		p := proof()
		if tested = p.Tested; p.Broken > 0 {
			t.Errorf("%+v: %+v", c, p)
		}
	}
	s.must("down", "live")
}
