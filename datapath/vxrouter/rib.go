package vxrouter

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"sublet/datapath/kernel"
)

// The kernel forgets the routes by a device that goes down, and tells nobody
// which. When it comes up again soon, zebra 8.4 takes them for installed: its
// table says so, and the kernel's lacks them for ever (FRRouting/frr issues
// 6327 and 14481). So the two tables are compared, and what zebra believes to
// have installed is installed.
//
// zebra belongs to the tenant. What it says is bounded, is waited for a short
// time, and is done in the tenant's own router only.

// Numbers of protocols as zebra gives them to the kernel (zebra/rt_netlink.h of
// FRR).
const (
	protocolBGP  = 186
	protocolISIS = 187
	protocolOSPF = 188
	protocolRIP  = 189 // RIPng, too
)

// protocols are those whose routes are compared: all that learn them. What a
// tenant states himself (staticd) he can see in either table.
var (
	protocols       = []uint8{protocolBGP, protocolISIS, protocolOSPF, protocolRIP}
	protocolNumbers = map[string]uint8{"bgp": protocolBGP, "isis": protocolISIS, "ospf": protocolOSPF, "ospf6": protocolOSPF, "rip": protocolRIP, "ripng": protocolRIP}
)

const (
	metricZebra = 20 // of every route that zebra installs

	compareEvery = 10 * time.Second // while the kernel's table stays as it is
	compareAfter = 5 * time.Second  // how long every audit compares once it changed
)

// zebraLimit bounds an answer: a route takes 700 bytes.
var zebraLimit = kernel.VTYLimit{Time: 300 * time.Millisecond, Bytes: 4 << 20}

// comparison is what is known of one router's tables.
type comparison struct {
	fib     table     // as last seen
	changed time.Time // when it was seen to be another one
	asked   time.Time
	pause   time.Duration // zebra was slow or wrong: not asked before asked+pause
}

// due says whether zebra is to be asked, of which the kernel has a table.
func (c *comparison) due(now time.Time, fib table) bool {
	if !equalTables(c.fib, fib) {
		c.fib, c.changed = fib, now
	}
	if now.Sub(c.asked) < c.pause {
		return false
	}
	return now.Sub(c.changed) < compareAfter || now.Sub(c.asked) >= compareEvery
}

// note takes down how asking went. A zebra that its tenant stopped costs the
// host a three-hundredth of the time at most, and less each time.
func (c *comparison) note(now time.Time, err error) {
	c.asked = now
	if err == nil {
		c.pause = 0
		return
	}
	c.pause = min(max(compareEvery, 2*c.pause), 10*time.Minute)
}

// lacks says whether a router's kernel lacks a route that its zebra takes for
// installed. What cannot be read is not said to be lacking.
func (p *Part) lacks(key string) bool {
	fib, err := p.fib(key)
	if err != nil {
		return false
	}
	now := time.Now()
	p.mu.Lock()
	c := p.compared[key]
	if c == nil {
		c = &comparison{}
		p.compared[key] = c
	}
	due := c.due(now, fib)
	p.mu.Unlock()
	if !due {
		return false
	}
	rib, err := p.rib(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	c.note(time.Now(), err)
	return err == nil && len(differing(rib, fib)) > 0
}

// reinstall gives the kernel what zebra takes for installed. A route that zebra
// changes meanwhile is left to it: the kernel must have lacked the same before
// and after zebra was asked, and zebra must still have it afterwards.
func (p *Part) reinstall(key string) error {
	before, err := p.fib(key)
	if err != nil {
		return err
	}
	rib, err := p.rib(key)
	if err != nil || len(differing(rib, before)) == 0 {
		return nil // a zebra that does not answer is its tenant's matter
	}
	after, err := p.fib(key)
	if err != nil {
		return err
	}
	lacking := differing(rib, before)
	maps.DeleteFunc(lacking, func(prefix netip.Prefix, _ []nextHop) bool { return !slices.Equal(before[prefix], after[prefix]) })
	return p.install(key, lacking)
}

func (p *Part) install(key string, routes table) error {
	c, err := p.host.Dial(key)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Foreign = true
	for prefix, hops := range routes {
		_ = c.Do(routeMessage(prefix, hops, metricZebra)) // by a device that just went: zebra changes it
	}
	rib, err := p.rib(key)
	if err != nil {
		return nil
	}
	for prefix, hops := range routes {
		if rib[prefix] == nil { // zebra took it back, and found nothing to remove
			_ = c.Do(kernel.DeleteRoute(kernel.Route{Prefix: prefix}, hops[0].protocol))
		}
	}
	return nil
}

// differing are the routes of one table that another has not got.
func differing(rib, fib table) table {
	lacking := make(table)
	for prefix, hops := range rib {
		if !slices.Equal(fib[prefix], hops) {
			lacking[prefix] = hops
		}
	}
	return lacking
}

func equalTables(a, b table) bool { return maps.EqualFunc(a, b, slices.Equal[[]nextHop]) }

// questions are what zebra is asked of each daemon's routes.
var questions = map[string][]string{
	"ospfd":  {"show ip route ospf json"},
	"ospf6d": {"show ipv6 route ospf6 json"},
	"bgpd":   {"show ip route bgp json", "show ipv6 route bgp json"},
	"isisd":  {"show ip route isis json", "show ipv6 route isis json"},
	"ripd":   {"show ip route rip json"},
	"ripngd": {"show ipv6 route ripng json"},
}

// rib asks zebra for the routes of daemons that it takes for installed.
func (p *Part) rib(key string) (table, error) {
	v, err := kernel.DialVTY(p.ownDir(key), "zebra", zebraLimit)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	pid, err := v.Peer()
	if err != nil {
		return nil, err
	}
	ours, err := p.running(key, "zebra")
	if err != nil {
		return nil, err
	}
	if !slices.Contains(ours, pid) {
		return nil, fmt.Errorf("the socket of zebra is process %d's", pid)
	}
	rib := make(table)
	for _, daemon := range p.configured(key) {
		for _, question := range questions[daemon] {
			text, err := v.Ask(question)
			if err == nil {
				err = rib.read(text)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return rib, nil
}

// read adds what zebra answered. It leaves out what no kernel would take.
func (t table) read(text []byte) error {
	var answer map[string][]struct {
		Prefix    netip.Prefix
		Protocol  string
		Selected  bool
		Installed bool
		Queued    bool
		Nexthops  []struct {
			Fib            bool
			Active         bool
			IP             netip.Addr
			InterfaceIndex int
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("read routes of zebra: %w", err)
	}
	for _, routes := range answer {
		for _, r := range routes {
			protocol := protocolNumbers[r.Protocol]
			if !r.Selected || !r.Installed || r.Queued || protocol == 0 || !r.Prefix.IsValid() {
				continue
			}
			var hops []nextHop
			for _, n := range r.Nexthops {
				if n.Fib && n.Active && n.IP.BitLen() == r.Prefix.Addr().BitLen() && n.InterfaceIndex > 0 {
					hops = append(hops, nextHop{n.IP, n.InterfaceIndex, protocol})
				}
			}
			if len(hops) > 0 {
				t[r.Prefix.Masked()] = sorted(hops)
			}
		}
	}
	return nil
}
