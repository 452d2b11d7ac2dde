package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/report"
	"sublet/vnet"
)

// changing is a chain over two hosts, with more of it between: functions, rates,
// other chains.
func changing(via, rate, rules, more string) string {
	return fmt.Sprintf(`network: live
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
functions:
  - {name: fw, host: h1, kind: firewall, rules: [{deny: {proto: tcp, dst_port: %s}}]}
  - {name: most, host: h2, kind: limiter, rate: 50Mbit}
  - name: ids
    host: h2
    run: `+passesOn+`
links:
  - {ends: [a, b], rate: 50Mbit}
chains:
  - {name: web, from: a, to: b, match: {proto: udp, dst_port: 9000}, via: [%s], rate: %s}
%s`, rules, via, rate, more)
}

// hopsOf are the hops of a network's chain, as they are shown.
func (l *lab) hopsOf(network, chain string) (hops []string) {
	l.t.Helper()
	var chains []struct {
		Name string
		Hops []report.ChainHop
	}
	need(l.t, json.Unmarshal([]byte(l.must("chains", network, "-o", "json")), &chains))
	for _, c := range chains {
		for _, h := range c.Hops {
			if c.Name == chain && !strings.HasPrefix(h.Hop, "to ") {
				hops = append(hops, h.Hop)
			}
		}
	}
	return hops
}

// While packets go through a chain it gets another rate, its functions other rules,
// others come beside it and go, and functions are put into it and taken out of it: not
// one packet is lost, each form is in force when apply ends, and what was is gone in the end.
func TestChainChangesLive(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(changing("fw", "5Mbit", "81", ""))
	s.sendsNumbers("live")

	began := time.Now()
	live := vnet.LeaseID{Tenant: "root", Network: "live"}
	beside := "  - {name: other, from: a, to: b, match: {proto: tcp}, via: [most], rate: 5Mbit}\n"
	for _, c := range []struct {
		text string
		says string
		hops string // of chain web, in order
	}{
		{changing("fw", "8Mbit", "81", ""), "rate of chain web 8Mbit instead of 5Mbit", "web.rate fw out"},
		{changing("fw", "8Mbit", "82", ""), "function of fw", "web.rate fw out"},
		{changing("fw, most", "8Mbit", "82", ""), "via of chain web", "web.rate fw most out"},
		{changing("fw, ids, most", "8Mbit", "82", ""), "via of chain web", "web.rate fw ids most out"},
		{changing("fw, ids, most", "8Mbit", "82", beside), "chain other is new", "web.rate fw ids most out"},
		{changing("most, fw", "8Mbit", "82", beside), "via of chain web", "web.rate most fw out"},
		{changing("fw", "8Mbit", "82", ""), "chain other is gone", "web.rate fw out"},
	} {
		t.Logf("%s: %s", time.Since(began).Round(time.Millisecond), c.says)
		file := s.file("live.yaml", c.text)
		eventually(t, time.Minute, func() error {
			said := s.sublet("apply", file)
			if said.code != 0 || !strings.Contains(said.out, c.says) {
				return fmt.Errorf("apply: exit code %d, %s%s", said.code, said.out, said.err)
			}
			return nil
		})
		if l := got(s.api.Lease(t.Context(), live))(t); api.Forming(l) {
			t.Errorf("%s: apply ended in phase %s", c.says, l.Move.Phase)
		}
		eventually(t, time.Minute, func() error {
			if hops := s.hopsOf("live", "web"); !slices.Equal(hops, strings.Fields(c.hops)) {
				return fmt.Errorf("hops %v instead of %s", hops, c.hops)
			}
			return nil
		})
	}
	file := s.file("live.yaml", changing("ids", "8Mbit", "82", ""))
	eventually(t, time.Minute, func() error { return s.runs("apply", file) })
	near := s.file("near.yaml", changing("ids, most", "8Mbit", "82", ""))
	eventually(t, time.Minute, func() error {
		if said := s.sublet("apply", near); said.code != 2 || !strings.Contains(said.err, "other neighbours") {
			return fmt.Errorf("a function beside a program: exit code %d, %s", said.code, said.err)
		}
		return nil
	})
	s.allArrived("live", 1000)
	s.asPlanned("h1", "h2")
	s.must("down", "live")
}

// runs says whether the program ends well.
func (l *lab) runs(args ...string) error {
	if said := l.sublet(args...); said.code != 0 {
		return fmt.Errorf("exit code %d: %s", said.code, said.err)
	}
	return nil
}

// sendsNumbers has node a of a network send numbered packets to b, two hundred in a second.
func (s *supervisor) sendsNumbers(network string) {
	s.t.Helper()
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: vnet.VNetID(network)}, "b")
	s.must("exec", "-d", network+"/b", "--", "python3", "-c", `
import os, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22); s.bind(("", 9000))
open("/tmp/ready", "w").close()
seen, again, sent = set(), 0, -1
while sent < 0:
    b = s.recv(2000); n = struct.unpack("!q", b[:8])[0]
    if n < 0: sent = -n - 1
    elif n in seen: again += 1
    else: seen.add(n)
lost = [n for n in range(sent) if n not in seen and n - 1 in seen or n not in seen and n + 1 in seen]
open("/tmp/counts.new", "w").write(f"{sent} {len(seen)} {again} edges {lost[:30]}"); os.rename("/tmp/counts.new", "/tmp/counts")`)
	eventually(s.t, time.Minute, func() error { return s.runs("exec", network+"/b", "--", "test", "-e", "/tmp/ready") })
	s.must("exec", "-d", network+"/a", "--", "python3", "-c", fmt.Sprintf(`
import os, socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect((%q, 9000)); n = 0
while not os.path.exists("/tmp/stop"):
    s.send(struct.pack("!q", n) + bytes(192)); n += 1; time.sleep(0.005)
for _ in range(10): time.sleep(0.3); s.send(struct.pack("!q", -n - 1))`, address))
}

// allArrived ends that after so many at least, and says which packets did not arrive, or twice.
func (s *supervisor) allArrived(network string, least int) {
	s.t.Helper()
	s.must("exec", network+"/a", "--", "touch", "/tmp/stop")
	var sent, seen, again int
	var lost string
	eventually(s.t, time.Minute, func() error {
		said := s.sublet("exec", network+"/b", "--", "cat", "/tmp/counts")
		lost = said.out
		_, err := fmt.Sscan(said.out, &sent, &seen, &again)
		return err
	})
	if sent < least || seen != sent || again != 0 {
		s.t.Errorf("of %d packets %d arrived, %d of them twice: %s", sent, seen, again, lost)
	}
	s.t.Logf("%d packets", sent)
}
