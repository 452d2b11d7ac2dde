package test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/internal/stall"
)

// namedWithin is how soon a sabotage is to be told.
const namedWithin = 3 * time.Second

// sabotage is one thing that somebody does to a host or a node behind Sublet's back.
type sabotage struct {
	what  string
	do    func() // the harm
	named string // what an event says of it, as a regular expression
	mend  func() // what nobody but its author takes back; nil: Sublet does
}

// TestSoakSabotagesAreToldInTime: forty ways to break what a lease is made of are each
// told within three seconds, by an event that names the part, and mended or, where only
// their author can, taken note of until they are.
//
//	h1:  a, router r ==== full, idle, up ==== b, c  :h2
func TestSoakSabotagesAreToldInTime(t *testing.T) {
	l := newLab(t, slowBackbone)
	l.up(`network: n
nodes: [{name: a, host: h1}, {name: b, host: h2}, {name: c, host: h2}]
routers: [{name: r, host: h1, protocol: static}]
links:
  - {name: full, ends: [a, b], rate: 20Mbit}
  - {name: idle, ends: [a, c], rate: 20Mbit}
  - {name: up, ends: [r, c], rate: 20Mbit}
`)
	s := &saboteur{lab: l}
	list := s.inNodes()
	for _, at := range []struct{ host, device, wire string }{{"h1", "to-h2", "w0a"}, {"h2", "to-h1", "w0b"}} {
		list = append(list, s.atHost(at.host, at.device)...)
		list = append(list, s.wireCut(at.wire), s.agentStopped(at.host))
	}
	if len(list) < 40 {
		t.Errorf("%d sabotages", len(list))
	}
	for _, one := range list {
		s.told(one)
	}
}

// atHost are those of a host's devices, queues and programs.
func (s *saboteur) atHost(host, device string) (list []sabotage) {
	tc := func(words ...string) func() { return s.within(host, append([]string{"tc"}, words...)...) }
	ip := func(words ...string) func() { return s.within(host, append([]string{"ip"}, words...)...) }
	const repaired, overlay = `repair +root/n +repaired .*link (full|idle|up) was not as planned`, `repair +root/n +repaired .*(overlay|link)`
	for _, class := range []string{"1:10", "1:11", "1:12"} {
		list = append(list,
			sabotage{"class " + class + " removed at " + host, tc("class", "del", "dev", device, "classid", class), repaired, nil},
			sabotage{"class " + class + " made slower at " + host, tc("class", "change", "dev", device, "parent", "1:2", "classid", class, "htb", "rate", "1mbit", "ceil", "1mbit"), repaired, nil},
		)
	}
	address := strings.Fields(s.in(s.host(host), "ip", "-o", "-4", "address", "show", "dev", device))[3]
	fabric := regexp.MustCompile(`(?m)^(sl\w{13})@`).FindStringSubmatch(s.in(s.host(host), "ip", "-br", "link"))
	if fabric == nil {
		s.t.Fatalf("%s has no device of the network's fabric", host)
	}
	pins := s.run + "/bpf/" + host
	return append(list,
		sabotage{"a queue replaced at " + host, tc("qdisc", "replace", "dev", device, "parent", "1:10", "handle", "10:", "bfifo", "limit", "3000"), repaired, nil},
		sabotage{"all queues removed at " + host, tc("qdisc", "del", "dev", device, "root"), repaired, nil},
		sabotage{"the device down at " + host, ip("link", "set", device, "down"), `link +backbone +down`, ip("link", "set", device, "up")},
		sabotage{"the address taken at " + host, ip("address", "flush", "dev", device), `degraded .*the host has no address`, ip("address", "add", address, "dev", device)},
		sabotage{"an MTU that is too small at " + host, ip("link", "set", device, "mtu", "1000"), `degraded .*carries packets of 950 bytes only`, ip("link", "set", device, "mtu", "1500")},
		sabotage{"a device of the tunnels deleted at " + host, ip("link", "del", "slcut0"), overlay, nil},
		sabotage{"another one deleted at " + host, ip("link", "del", "slopen"), overlay, nil},
		sabotage{"the fabric's device deleted at " + host, ip("link", "del", fabric[1]), overlay, nil},
		sabotage{"the program of what comes taken away at " + host, s.removed(pins + "/overlay/rx_" + device), overlay, nil},
		sabotage{"the program of what leaves taken away at " + host, s.removed(pins + "/overlay/tx_" + fabric[1]), overlay, nil},
		sabotage{"the trunk's program taken away at " + host, s.removed(pins + "/vxlink/trunk_1"), overlay, nil},
	)
}

// inNodes are those of nodes' ports.
func (s *saboteur) inNodes() (list []sabotage) {
	for _, at := range []struct{ node, port, link string }{{"a", "eth0", "full"}, {"a", "eth1", "idle"}, {"b", "eth0", "full"}, {"c", "eth0", "idle"}, {"r", "eth0", "up"}} {
		inside := func(words ...string) func() {
			return func() { s.must(append([]string{"exec", "n/" + at.node, "--", "ip", "link"}, words...)...) }
		}
		list = append(list, sabotage{"a port of " + at.node + " deleted", inside("del", at.port), `repair +root/n +repaired .*link ` + at.link, nil})
	}
	return list
}

// wireCut is that of the lab's wire, at one of its ends.
func (s *saboteur) wireCut(end string) sabotage {
	wire := func(to string) func() {
		return func() { s.in(s.wires(), "ip", "link", "set", end, to) }
	}
	return sabotage{"the wire cut at " + end, wire("down"), `link +backbone +down`, wire("up")}
}

func (s *saboteur) agentStopped(host string) sabotage {
	agent := s.agent(host)
	s.t.Cleanup(func() { _ = syscall.Kill(agent, syscall.SIGCONT) })
	return sabotage{"the agent of " + host + " stopped",
		func() { _ = syscall.Kill(agent, syscall.SIGSTOP) }, `host +` + host + ` +silent`, func() { _ = syscall.Kill(agent, syscall.SIGCONT) }}
}

func (s *saboteur) within(host string, words ...string) func() {
	return func() { s.in(s.host(host), words...) }
}

func (s *saboteur) removed(pin string) func() {
	return func() {
		if err := os.Remove(pin); err != nil {
			s.t.Fatal(err)
		}
	}
}

// told does harm, waits until an event names it, mends it, and waits until all is well.
func (s *saboteur) told(one sabotage) {
	s.t.Helper()
	named := regexp.MustCompile(one.named)
	count := func() int { return len(named.FindAllString(s.must("events"), -1)) }
	before := count()
	began, watch := time.Now(), stall.Start()
	one.do()
	for count() == before && time.Since(began) < 10*namedWithin {
		time.Sleep(50 * time.Millisecond)
	}
	took, starved := time.Since(began), watch.Stop()
	switch {
	case count() == before:
		s.t.Errorf("%s is not told:\n%s", one.what, s.must("events"))
	case took > namedWithin && starved.Part() < 0.05:
		s.t.Errorf("%s was told after %s", one.what, took.Round(time.Millisecond))
	}
	s.t.Logf("%s: told after %s", one.what, took.Round(10*time.Millisecond))
	if one.mend != nil {
		one.mend()
	}
	calm, known := time.Now(), ""
	eventually(s.t, time.Minute, func() error {
		if now := s.must("events"); now != known {
			known, calm = now, time.Now()
		}
		if out := s.must("leases"); !strings.Contains(out, "running") || time.Since(calm) < 1500*time.Millisecond {
			return fmt.Errorf("after %s: %s%s", one.what, out, known)
		}
		return nil
	})
}
