package vxrouter

import (
	"fmt"
	"net/netip"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
)

// While a router with daemons goes to another host, all that speak its protocol learn
// anew. Until they have, each router of the network keeps what its kernel had learned,
// as routes that are looked at last: of each prefix, the daemon's route has the smaller
// metric.

const (
	// protocolKept marks kept routes; FRR uses 11 and 186 to 199.
	protocolKept = 157

	// metricKept has 255 as its first byte, which zebra takes for the distance of a
	// route that it finds in the kernel: one with 255 it never uses, nor tells others
	// of (netlink_route_change_read_unicast in zebra/rt_netlink.c of FRR).
	metricKept = 0xff<<24 | metricZebra

	// A route is kept for keptAtLeast after the move, by when neighbours have noticed
	// that the router began anew: their dead and hold times are 4 s and 3 s, a
	// tenant's own may be longer. Then it goes as soon as daemons have one for its
	// prefix, at the latest after keptAtMost.
	keptAtLeast = 15 * time.Second
	keptAtMost  = 45 * time.Second
)

// keeping is that a router keeps routes; since when it shall no longer, if set.
type keeping struct{ until time.Time }

// setKept has a router keep what it has learned, or begin to let go of it.
func (p *Part) setKept(c *kernel.Conn, r plan.VxRouter) error {
	p.mu.Lock()
	k, kept := p.kept[r.Key()]
	switch {
	case r.Keep:
		p.kept[r.Key()] = keeping{}
	case kept && k.until.IsZero():
		p.kept[r.Key()] = keeping{until: time.Now()}
	}
	p.mu.Unlock()
	if !r.Keep {
		return nil
	}
	fib, err := p.fib(r.Key())
	if err != nil {
		return err
	}
	return keep(c, fib)
}

// keep adds routes to those that are kept.
func keep(c *kernel.Conn, routes table) error {
	for prefix, hops := range routes {
		kept := make([]nextHop, len(hops))
		for i, h := range hops {
			kept[i] = nextHop{h.via, h.index, protocolKept}
		}
		if err := c.Do(routeMessage(prefix, kept, metricKept)); err != nil && !kernel.NotFound(err) {
			return fmt.Errorf("keep the route to %s: %w", prefix, err)
		}
	}
	return nil
}

// observeKept says whether a router shall keep routes. What an agent before this one
// had it keep is let go of, unless the plan says otherwise.
func (p *Part) observeKept(key string, daemons bool) bool {
	p.mu.Lock()
	k, known := p.kept[key]
	p.mu.Unlock()
	if known || !daemons {
		return known && k.until.IsZero()
	}
	routes, err := p.routesOf(key, []uint8{protocolKept})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && len(routes) > 0 {
		p.kept[key] = keeping{until: time.Now()}
	}
	return false
}

func (p *Part) forgetKept(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.kept, key)
}

// dropKept lets go of kept routes whose time is over.
func (p *Part) dropKept(now time.Time) {
	p.mu.Lock()
	due := make(map[string]time.Duration)
	for key, k := range p.kept {
		if over := now.Sub(k.until); !k.until.IsZero() && over >= keptAtLeast {
			due[key] = over
		}
	}
	p.mu.Unlock()
	for key, over := range due {
		if left, err := p.letGo(key, over >= keptAtMost); err != nil || left > 0 {
			continue // tried again
		}
		p.mu.Lock()
		if k := p.kept[key]; !k.until.IsZero() { // not kept anew meanwhile
			delete(p.kept, key)
		}
		p.mu.Unlock()
	}
}

// letGo removes the kept routes for which daemons have others, or all, and says how
// many are left.
func (p *Part) letGo(key string, all bool) (left int, err error) {
	kept, err := p.routesOf(key, []uint8{protocolKept})
	if err != nil || len(kept) == 0 {
		return 0, err
	}
	fib, err := p.fib(key)
	if err != nil {
		return 0, err
	}
	c, err := p.host.Dial(key)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	c.Foreign = true
	for prefix := range kept {
		if !all && fib[prefix] == nil {
			left++
			continue
		}
		if err := c.Do(kernel.DeleteRoute(kernel.Route{Prefix: prefix}, protocolKept)); err != nil && !kernel.NotFound(err) {
			return left, fmt.Errorf("let go of the route to %s: %w", prefix, err)
		}
	}
	return left, nil
}

// Learned are the routes that a router's daemons have learned.
func (p *Part) Learned(key string) ([]report.Learned, error) {
	fib, err := p.fib(key)
	if err != nil {
		return nil, err
	}
	names, err := p.interfaces(key)
	if err != nil {
		return nil, err
	}
	var list []report.Learned
	for prefix, hops := range fib {
		for _, h := range hops {
			if name := names[h.index]; name != "" {
				list = append(list, report.Learned{Prefix: prefix, Via: h.via, Interface: name})
			}
		}
	}
	if len(list) > report.MostLearned {
		return nil, fmt.Errorf("router %s has learned %d ways, and may take %d along", key, len(list), report.MostLearned)
	}
	return list, nil
}

// Keep gives a router routes that another one has learned.
func (p *Part) Keep(key string, list []report.Learned) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	names, err := p.interfaces(key)
	if err != nil {
		return err
	}
	indexes := make(map[string]int, len(names))
	for index, name := range names {
		indexes[name] = index
	}
	routes := make(table)
	for _, r := range list {
		index := indexes[r.Interface]
		if index == 0 || !r.Prefix.IsValid() || r.Via.BitLen() != r.Prefix.Addr().BitLen() {
			return fmt.Errorf("route to %s by %s: router %s has no such interface", r.Prefix, r.Interface, key)
		}
		prefix := netip.PrefixFrom(r.Prefix.Addr(), r.Prefix.Bits()).Masked()
		routes[prefix] = sorted(append(routes[prefix], nextHop{r.Via, index, protocolKept}))
	}
	c, err := p.host.Dial(key)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Foreign = true
	return keep(c, routes)
}

// interfaces are the names of a router's devices.
func (p *Part) interfaces(key string) (map[int]string, error) {
	c, err := p.host.Dial(key)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.Foreign = true
	links, err := c.Links()
	if err != nil {
		return nil, fmt.Errorf("read interfaces: %w", err)
	}
	names := make(map[int]string, len(links))
	for _, l := range links {
		names[l.Index] = l.Name
	}
	return names, nil
}
