package vxrouter

import (
	"fmt"
	"net/netip"
	"slices"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// readRoutes reads our routes in the calling thread's namespace, and what its
// tenant made of the interfaces. These are read last: one that is up then may lack
// routes, which is looked at again; one that is down has none.
func readRoutes(forward bool) (routes []plan.Route, classes []plan.RouteClass, inside map[string]plan.Inside, err error) {
	c, err := kernel.Dial()
	if err != nil {
		return nil, nil, nil, err
	}
	defer c.Close()
	c.Foreign = true
	var rules []kernel.Rule
	if forward {
		if rules, err = c.Rules(Protocol); err != nil {
			return nil, nil, nil, err
		}
	}
	all, err := c.AllRoutes(0, Protocol)
	if err != nil {
		return nil, nil, nil, err
	}
	links, err := c.Links()
	if err != nil {
		return nil, nil, nil, err
	}
	names := make(map[int]string, len(links))
	for _, l := range links {
		names[l.Index] = l.Name
	}
	tables := make(map[uint32][]plan.Route)
	for _, r := range all {
		tables[r.Table] = append(tables[r.Table], plan.Route{Prefix: r.Prefix, Via: r.Via, Interface: names[r.Index]})
	}
	for _, list := range tables {
		slices.SortFunc(list, func(a, b plan.Route) int { return plan.ComparePrefixes(a.Prefix, b.Prefix) })
	}
	return tables[0], classesOf(rules, tables), insideOf(links), nil
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

// ownRoute is a route's prefix in one of our tables.
type ownRoute struct {
	table  uint32
	prefix netip.Prefix
}

// setRoutes adds what is missing, by interfaces that can have it, and removes what
// is ours and not wanted, by table.
func setRoutes(c *kernel.Conn, want map[uint32][]plan.Route) error {
	have, err := c.AllRoutes(0, Protocol)
	if err != nil {
		return fmt.Errorf("read routes: %w", err)
	}
	have = slices.DeleteFunc(have, func(r kernel.Route) bool {
		return r.Table != 0 && (r.Table < classTables || r.Table >= classTables+vnet.MaxClasses) // a tenant's, with our number
	})
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
	count := make(map[ownRoute]int, len(have)) // above one: a tenant's, with our number
	for _, r := range have {
		there[r] = true
		count[ownRoute{r.Table, r.Prefix}]++
	}
	wanted := make(map[ownRoute]bool)
	var adds, deletes []*kernel.Message
	for table, list := range want {
		for _, r := range list {
			route, own := kernel.Route{Prefix: r.Prefix, Via: r.Via, Index: indexes[r.Interface], Table: table, Nowhere: r.Interface == ""}, ownRoute{table, r.Prefix}
			if route.Index == 0 && !route.Nowhere {
				return fmt.Errorf("route to %s: no interface %s", r.Prefix, r.Interface)
			}
			if inside[r.Interface].Lacks(r.Prefix.Addr()) {
				continue
			}
			wanted[own] = true
			if !there[route] || count[own] > 1 {
				adds = append(adds, kernel.AddRoute(route, Protocol))
			}
		}
	}
	for _, r := range have {
		if own := (ownRoute{r.Table, r.Prefix}); !wanted[own] || count[own] > 1 {
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

// addNeighbours enters the stations that a node knows from the beginning. One behind
// an interface that its tenant set down is left out.
func addNeighbours(c *kernel.Conn, list []plan.Station) error {
	if len(list) == 0 {
		return nil
	}
	links, err := c.Links()
	if err != nil {
		return fmt.Errorf("read interfaces: %w", err)
	}
	adds := make(map[bool][]*kernel.Message) // by whether they are of IPv4
	for _, l := range links {
		for _, s := range list {
			if l.Name == s.Interface && l.Up {
				adds[s.Address.Is4()] = append(adds[s.Address.Is4()], kernel.AddNeighbour(s.Address, l.Index, s.Hardware))
			}
		}
	}
	_ = c.Batch(adds[false]) // the tenant may have ended IPv6 there
	if err := c.Batch(adds[true]); err != nil {
		return fmt.Errorf("enter %d neighbours: %w", len(adds[true]), err)
	}
	return nil
}
