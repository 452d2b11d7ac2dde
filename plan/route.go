package plan

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"sublet/vnet"
)

// router gives a virtual node its routing; it is computed once.
func (n *network) router(name string) VxRouter {
	r, made := n.tables[name]
	if made {
		return r
	}
	r = n.routing(name)
	if n.tables == nil {
		n.tables = make(map[string]VxRouter)
	}
	n.tables[name] = r
	return r
}

func (n *network) routing(name string) VxRouter {
	protocol, isRouter := n.routers[name]
	r := VxRouter{Lease: n.lease.ID(), Node: name, Forward: isRouter}
	switch protocol {
	case vnet.ProtocolOSPF:
		r.OSPF, r.Routes = n.ospf(name), n.beyond(name)
	case vnet.ProtocolNone:
		r.Routes = slices.DeleteFunc(n.routes(name, true), func(r Route) bool { return r.Via.IsValid() })
		if len(r.Routes) == 0 {
			r.Routes = nil
		}
	default:
		r.Routes = n.routes(name, isRouter)
	}
	return r
}

// ospf says on which interfaces of a router to speak OSPF. The router's own
// address serves as its id.
func (n *network) ospf(name string) *OSPF {
	o := &OSPF{RouterID: n.address(name)}
	for _, i := range n.ports[name] {
		if n.routers[i.peer] == vnet.ProtocolOSPF {
			o.Interfaces = append(o.Interfaces, i.device)
		} else {
			o.Stubs = append(o.Stubs, i.device)
		}
	}
	slices.Sort(o.Interfaces)
	slices.Sort(o.Stubs)
	return o
}

// beyond are the routes of a router that speaks OSPF to what it will never
// hear of, because only routers that do not speak it lead there.
func (n *network) beyond(from string) []Route {
	heard := n.heard(from)
	table := slices.DeleteFunc(n.routes(from, true), func(r Route) bool { return heard[r.Prefix.Addr()] })
	if len(table) == 0 {
		return nil // what a host without any is observed to have
	}
	return table
}

// heard are the addresses that a router hears of by OSPF.
func (n *network) heard(from string) map[netip.Addr]bool {
	heard := make(map[netip.Addr]bool)
	seen := map[string]bool{from: true}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, i := range n.ports[queue[0]] {
			if i.station != nil {
				continue // no adjacency is formed across switches
			}
			heard[n.address(i.peer)] = true
			if n.routers[i.peer] == vnet.ProtocolOSPF && !seen[i.peer] {
				seen[i.peer] = true
				queue = append(queue, i.peer)
			}
		}
	}
	return heard
}

// routes computes a node's table: fewest hops, through routers only. Direct
// neighbours need no route, but for stations outside of their segment's
// subnet. A default route leads to a way out; in a network without one an end
// node sends what goes the most common way by it, so that a leaf has one route
// however large its network.
func (n *network) routes(from string, router bool) []Route {
	ports := n.ports[from]
	if !router && len(ports) == 1 && ports[0].station == nil {
		return n.gateway(from, ports[0])
	}
	var table []Route
	uses := make(map[nodeInterface]int)
	firsts := n.firstHops(from)
	for name, first := range firsts {
		switch r := n.route(single(n.address(name)), first); {
		case first.peer != name:
			table = append(table, r)
			uses[nodeInterface{device: first.device, peer: first.peer}]++
		case first.station != nil && !n.subnet[n.behind(first)].Contains(n.address(name)):
			table = append(table, Route{Prefix: r.Prefix, Interface: r.Interface})
		}
	}
	out, leads := n.outward(from, firsts)
	if !leads && len(uses) > 0 {
		out = mostUsed(uses)
	}
	switch everywhere := defaultPrefix(n.address(from)); {
	case !router && (leads || len(uses) > 0):
		table = n.compress(table, n.attached(ports), n.route(everywhere, out))
	case leads:
		table = append(table, n.route(everywhere, out))
	}
	slices.SortFunc(table, func(a, b Route) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	return table
}

// gateway is the table of a node with one link: everything goes to the router
// at its far end, if it is one.
func (n *network) gateway(from string, port nodeInterface) []Route {
	if _, forwards := n.routers[port.peer]; !forwards {
		return nil
	}
	return []Route{n.route(defaultPrefix(n.address(from)), port)}
}

// behind is the switch that a station's interface leads to.
func (n *network) behind(i nodeInterface) string { return i.station.Link.Ends[1-i.station.End] }

// attached lists the subnets of a node's interfaces.
func (n *network) attached(ports []nodeInterface) []netip.Prefix {
	var list []netip.Prefix
	for _, i := range ports {
		if i.station != nil {
			list = append(list, n.subnet[n.behind(i)])
		}
	}
	return list
}

// mostUsed is the neighbour that most routes go by. Ties go to the one with the
// lowest interface and name.
func mostUsed(uses map[nodeInterface]int) nodeInterface {
	return slices.MinFunc(slices.Collect(maps.Keys(uses)), func(a, b nodeInterface) int {
		return cmp.Or(-cmp.Compare(uses[a], uses[b]), byDevice(a.device, b.device), cmp.Compare(a.peer, b.peer))
	})
}

// compress replaces the routes that go the way of a default one by it, except to
// addresses of subnets that the node is attached to: those would go there.
func (n *network) compress(table []Route, attached []netip.Prefix, way Route) []Route {
	rest := slices.DeleteFunc(table, func(r Route) bool {
		return r.Interface == way.Interface && r.Via == way.Via &&
			!slices.ContainsFunc(attached, func(p netip.Prefix) bool { return p.Contains(r.Prefix.Addr()) })
	})
	return append(rest, way)
}

// byDevice orders eth2 before eth10.
func byDevice(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

func (n *network) route(prefix netip.Prefix, i nodeInterface) Route {
	return Route{Prefix: prefix, Via: n.address(i.peer), Interface: i.device}
}

func defaultPrefix(addr netip.Addr) netip.Prefix {
	if addr.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

// firstHops finds, breadth first, by which of its interfaces a node reaches
// every other. Ties go to the link stated first.
func (n *network) firstHops(from string) map[string]nodeInterface {
	first := make(map[string]nodeInterface)
	crossed := make(map[*segment]bool)
	queue := []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if _, forwards := n.routers[at]; at != from && !forwards {
			continue
		}
		for _, i := range n.ports[at] {
			for _, next := range n.across(i, crossed) {
				if _, seen := first[next.peer]; seen || next.peer == from {
					continue
				}
				if at != from {
					first[next.peer] = first[at]
				} else {
					first[next.peer] = next
				}
				queue = append(queue, next.peer)
			}
		}
	}
	return first
}

// across lists the neighbours on an interface: one, or those on a segment. A
// segment without private ports is crossed once: whoever comes later finds
// nothing new behind it.
func (n *network) across(i nodeInterface, crossed map[*segment]bool) []nodeInterface {
	if i.station == nil {
		return []nodeInterface{i}
	}
	s := n.segment[n.behind(i)]
	if crossed[s] {
		return nil
	}
	crossed[s] = !s.private
	var list []nodeInterface
	for _, st := range s.stations {
		if st.Node != i.station.Node && n.adjacent(s, *i.station, st) {
			list = append(list, nodeInterface{device: i.device, peer: st.Node, station: i.station})
		}
	}
	return list
}
