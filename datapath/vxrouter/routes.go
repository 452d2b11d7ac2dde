package vxrouter

import (
	"fmt"
	"net/netip"
	"slices"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// readRoutes reads our routes in the calling thread's namespace, and what its
// tenant made of the interfaces. These are read last: one that is up then may lack
// routes, which is looked at again; one that is down has none.
func readRoutes() ([]plan.Route, map[string]plan.Inside, error) {
	c, err := kernel.Dial()
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	c.Foreign = true
	routes, err := c.Routes(0, Protocol)
	if err != nil {
		return nil, nil, err
	}
	links, err := c.Links()
	if err != nil {
		return nil, nil, err
	}
	inside := insideOf(links)
	if len(routes) == 0 {
		return nil, inside, nil
	}
	names := make(map[int]string, len(links))
	for _, l := range links {
		names[l.Index] = l.Name
	}
	list := make([]plan.Route, len(routes))
	for i, r := range routes {
		list[i] = plan.Route{Prefix: r.Prefix, Via: r.Via, Interface: names[r.Index]}
	}
	slices.SortFunc(list, func(a, b plan.Route) int { return plan.ComparePrefixes(a.Prefix, b.Prefix) })
	return list, inside, nil
}

// insideOf is what a tenant made of the links' interfaces, by their names; nil:
// nothing.
func insideOf(links []kernel.Link) map[string]plan.Inside {
	var inside map[string]plan.Inside
	for _, l := range links {
		is := plan.Inside{Down: !l.Up, NoIPv6: l.MTU < plan.LeastIPv6}
		if l.Kind != "veth" || l.PeerNS < 0 || is == (plan.Inside{}) {
			continue
		}
		if inside == nil {
			inside = make(map[string]plan.Inside)
		}
		inside[l.Name] = is
	}
	return inside
}

// setRoutes adds what is missing, by interfaces that can have it, and removes what
// is ours and not wanted.
func setRoutes(c *kernel.Conn, want []plan.Route) error {
	have, err := c.Routes(0, Protocol)
	if err != nil {
		return fmt.Errorf("read routes: %w", err)
	}
	if len(want) == 0 && len(have) == 0 {
		return nil
	}
	links, err := c.Links()
	if err != nil {
		return fmt.Errorf("read interfaces: %w", err)
	}
	indexes := make(map[string]int, len(links))
	for _, l := range links {
		indexes[l.Name] = l.Index
	}
	inside := insideOf(links)
	there := make(map[kernel.Route]bool, len(have))
	count := make(map[netip.Prefix]int, len(have)) // above one: a tenant's, with our number
	for _, r := range have {
		there[r] = true
		count[r.Prefix]++
	}
	wanted := make(map[netip.Prefix]bool, len(want))
	var adds, deletes []*kernel.Message
	for _, r := range want {
		route := kernel.Route{Prefix: r.Prefix, Via: r.Via, Index: indexes[r.Interface]}
		if route.Index == 0 {
			return fmt.Errorf("route to %s: no interface %s", r.Prefix, r.Interface)
		}
		if inside[r.Interface].Lacks(r.Prefix.Addr()) {
			continue
		}
		wanted[r.Prefix] = true
		if !there[route] || count[r.Prefix] > 1 {
			adds = append(adds, kernel.AddRoute(route, Protocol))
		}
	}
	for _, r := range have {
		if !wanted[r.Prefix] || count[r.Prefix] > 1 {
			deletes = append(deletes, kernel.DeleteRoute(r, Protocol))
		}
	}
	if err := c.Batch(deletes); err != nil && !kernel.NotFound(err) {
		return fmt.Errorf("delete %d routes: %w", len(deletes), err)
	}
	if err := c.Batch(adds); err != nil {
		return fmt.Errorf("add %d routes: %w", len(adds), err)
	}
	return nil
}

// addNeighbours enters the stations that a router knows from the beginning. One behind
// an interface that its tenant set down is left out.
func addNeighbours(c *kernel.Conn, list []plan.Station) error {
	if len(list) == 0 {
		return nil
	}
	links, err := c.Links()
	if err != nil {
		return fmt.Errorf("read interfaces: %w", err)
	}
	for _, l := range links {
		for _, s := range list {
			if l.Name != s.Interface || !l.Up {
				continue
			}
			if err := c.Do(kernel.AddNeighbour(s.Address, l.Index, s.Hardware)); err != nil {
				return fmt.Errorf("enter neighbour %s: %w", s, err)
			}
		}
	}
	return nil
}
