package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// lollipop is a ring of three routers and a line to a fourth, which speak some
// protocol.
//
//	pc1 - r1 --- r2
//	        \   /
//	         r3 --- r4 - pc2
func lollipop(protocol string) string {
	routers := ""
	for i := range 4 {
		routers += fmt.Sprintf("  - {name: r%d, protocol: %s%s}\n", i+1, protocol, map[string]string{"bgp": fmt.Sprintf(", as: %d", 65001+i)}[protocol])
	}
	links := ""
	for i, ends := range []string{"r1, r2", "r2, r3", "r3, r1", "r3, r4"} {
		a, b, _ := strings.Cut(ends, ", ")
		links += fmt.Sprintf("  - {ends: [{node: %s, address: [10.1.%d.1/24, \"2001:db8:%d::1/64\"]}, %s], rate: 5Mbit}\n", a, i, i, b)
	}
	return fmt.Sprintf("network: %s\nnodes: [{name: pc1}, {name: pc2}]\nrouters:\n%slinks:\n%s  - {ends: [pc1, r1], rate: 5Mbit}\n  - {ends: [pc2, r4], rate: 5Mbit}\n", protocol, routers, links)
}

// TestSoakTablesAgreeAfterFlaps: by each protocol, in a ring and on a line, what
// routers believe and what their kernels have agree again within 5 s of what
// flapped, by command or inside, or the lease says what is broken; then all is as
// before.
func TestSoakTablesAgreeAfterFlaps(t *testing.T) {
	if !haveFRR() {
		t.Skip("routing protocols take FRR")
	}
	l := newLab(t, "star:2")
	protocols := []string{"static", "ospf", "ospf6", "isis", "bgp"}
	for _, p := range protocols {
		l.must("up", "--no-wait", l.file("request.yaml", lollipop(p)))
	}
	for _, p := range protocols {
		eventually(t, 30*time.Second, func() error { return l.healed(p) })
	}
	t.Run("protocols", func(t *testing.T) {
		for _, p := range protocols {
			t.Run(p, func(t *testing.T) {
				t.Parallel()
				own := *l
				own.t = t
				own.flaps(p)
			})
		}
	})
	l.settled()
}

// flaps lets links and interfaces of a network go and come, in the ring, on the
// line, and of all of a router.
func (l *lab) flaps(network string) {
	l.t.Helper()
	for _, flap := range []func(){
		func() { l.must("link", "down", network+"/r1-r2"); l.must("link", "up", network+"/r1-r2") },
		func() { l.must("link", "down", network+"/r3-r4"); l.must("link", "up", network+"/r3-r4") },
		func() {
			l.must("exec", network+"/r3", "--", "sh", "-c", "for i in 1 2; do for to in down up; do for d in eth0 eth1 eth2; do ip link set $d $to; done; sleep 0.3; done; done")
		},
	} {
		flap()
		healed := false
		eventually(l.t, 5*time.Second, func() error {
			err := l.healed(network)
			healed = err == nil
			if state, _, _ := l.stateOf(network); err != nil && state != vnet.Running {
				return nil // it says so
			}
			return err
		})
		if !healed {
			eventually(l.t, 15*time.Second, func() error { return l.healed(network) })
		}
	}
}

// healed says whether the tables of a network's routers agree, and its nodes reach
// each other.
func (l *lab) healed(network string) error {
	if state, message, _ := l.stateOf(network); state != vnet.Running {
		return fmt.Errorf("%s is %s: %s", network, state, message)
	}
	if err := l.pinged(network, "pc1", "pc2"); err != nil {
		return err
	}
	if network == "static" {
		return nil // no daemon believes anything
	}
	for _, router := range []string{"r1", "r2", "r3", "r4"} {
		if err := l.tablesAgree(network, router); err != nil {
			return fmt.Errorf("%s of %s: %w", router, network, err)
		}
	}
	return nil
}

// learned is what daemons learn, by their names in both tables.
var learned = map[string]bool{"ospf": true, "ospf6": true, "isis": true, "bgp": true}

// tablesAgree compares what zebra takes for installed with what the kernel has.
func (l *lab) tablesAgree(network, router string) error {
	r := l.sublet("exec", network+"/"+router, "--", "sh", "-c",
		"for f in ip ipv6; do vtysh -c \"show $f route json\"; echo; echo ---; done; for f in -4 -6; do ip $f -j -N route; echo ---; done")
	parts := strings.Split(r.out, "---\n")
	if r.code != 0 || len(parts) < 4 {
		return fmt.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	for i, family := range []string{"IPv4", "IPv6"} {
		rib, err := believed(parts[i])
		if err != nil {
			return err
		}
		fib, err := installed(parts[2+i])
		if err != nil {
			return err
		}
		if !maps.EqualFunc(rib, fib, slices.Equal[[]string]) {
			return fmt.Errorf("of %s zebra has %v, the kernel %v", family, rib, fib)
		}
	}
	return nil
}

// believed are the next hops by prefix that zebra takes for installed.
func believed(text string) (map[string][]string, error) {
	var all map[string][]struct {
		Protocol            string
		Selected, Installed bool
		Nexthops            []struct {
			Fib           bool
			IP            string
			InterfaceName string
		}
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("%w in %s", err, text)
	}
	rib := make(map[string][]string)
	for prefix, routes := range all {
		for _, r := range routes {
			for _, hop := range r.Nexthops {
				if learned[r.Protocol] && r.Selected && r.Installed && hop.Fib {
					rib[prefix] = append(rib[prefix], hop.IP+" "+hop.InterfaceName)
				}
			}
		}
		slices.Sort(rib[prefix])
	}
	maps.DeleteFunc(rib, func(_ string, hops []string) bool { return len(hops) == 0 })
	return rib, nil
}

// zebraNumbers are the protocols of routes that zebra gives the kernel
// (zebra/rt_netlink.h): BGP, IS-IS, OSPF.
var zebraNumbers = map[string]bool{"186": true, "187": true, "188": true}

// installed are those that the kernel has of daemons.
func installed(text string) (map[string][]string, error) {
	type hop struct {
		Gateway string
		Dev     string
		Via     struct{ Host string }
	}
	var all []struct {
		hop
		Dst, Protocol string
		Nexthops      []hop
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("%w in %s", err, text)
	}
	fib := make(map[string][]string)
	for _, r := range all {
		if !zebraNumbers[r.Protocol] {
			continue
		}
		if !strings.Contains(r.Dst, "/") {
			r.Dst += map[bool]string{true: "/128", false: "/32"}[strings.Contains(r.Dst, ":")]
		}
		for _, h := range append(r.Nexthops, r.hop) {
			if h.Gateway != "" {
				fib[r.Dst] = append(fib[r.Dst], h.Gateway+" "+h.Dev)
			}
		}
		slices.Sort(fib[r.Dst])
	}
	return fib, nil
}
