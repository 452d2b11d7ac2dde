package plan

import (
	"cmp"
	"maps"
	"math"
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
	r.Classes = n.classes(name)
	most := mostNeighbours
	if n.comes(name) {
		most = math.MaxInt
	}
	r.Neighbours = n.neighbours(name, most)
	if n.tables == nil {
		n.tables = make(map[string]VxRouter)
	}
	n.tables[name] = r
	return r
}

// comes says whether a router is on its way from another host.
func (n *network) comes(name string) bool {
	m := n.lease.Move
	_, isRouter := n.routers[name]
	return isRouter && m != nil && m.Phase != vnet.MoveLeaves && m.From.Nodes[name] != "" && m.From.Nodes[name] != n.lease.Mapping.Nodes[name]
}

// mostNeighbours is how many stations of large segments each node is told of: a plan that
// told all of all would be of the square of their size.
const mostNeighbours = 16

// neighbours are the stations that a node or router may send to, by the addresses that
// it sends to, so many or some more. Not those of which the plan does not know who answers: machines of users
// that join, devices of the operator's, and what a controller may answer for.
func (n *network) neighbours(name string, most int) (list []Station) {
	for _, i := range n.sortedPorts(name) {
		if i.station == nil {
			peer := Port{Namespace: Namespace(n.lease.ID(), i.peer), Interface: n.device[i.far]}
			list = append(list, n.stationsOf(i.far, i.peer, peer, i.device)...)
			continue
		}
		if n.segment[n.behind(i)].openFlow {
			continue
		}
		for _, st := range n.segment[n.behind(i)].stations {
			if len(list) >= most {
				return list
			}
			if st.Node != name && n.onSegment(i, st.Node) {
				list = append(list, n.stationsOf(linkEnd{st.Link.Name, st.End}, st.Node, *n.port(st.Link, st.End), i.device)...)
			}
		}
	}
	return list
}

// stationsOf are the addresses of a node at one of its ports, behind a device of another.
func (n *network) stationsOf(at linkEnd, node string, port Port, device string) (list []Station) {
	if n.strangers[node] {
		return nil
	}
	list = append(list, Station{n.endAddress(at, node), port.Hardware(), device})
	for _, p := range n.endAddresses(at) {
		if p.Addr().Is6() {
			list = append(list, Station{p.Addr(), port.Hardware(), device})
		}
	}
	return list
}

func (n *network) routing(name string) VxRouter {
	protocol, isRouter := n.routers[name]
	r := VxRouter{Lease: n.lease.ID(), Node: name, Forward: isRouter}
	switch {
	case protocol == vnet.ProtocolOSPF && n.usualOSPF(name):
		r.OSPF, r.Routes = n.ospf(name), n.beyond(name)
	case speaksAny(protocol):
		r.FRR, r.Routes = n.frr(name), n.beyond(name)
	case protocol == vnet.ProtocolNone:
		r.Routes = slices.DeleteFunc(n.routes(name, true), func(r Route) bool { return r.Via.IsValid() })
		if len(r.Routes) == 0 {
			r.Routes = nil
		}
		if n.numbers[name].FRR != "" {
			r.FRR = n.frr(name)
		}
	default:
		r.Routes = n.routes(name, isRouter)
	}
	if isRouter && protocol != vnet.ProtocolNone {
		r.Routes = n.closed(name, r.Routes)
	}
	return r
}

// closed is the table of a router whose default route leads to a way out, or is one,
// with dead ends: what is for a node of the network and cannot go there, for now or as
// links are, neither leaves by the way out nor comes back from it. They are IPv4's, as
// ways out are.
func (n *network) closed(name string, table []Route) []Route {
	if !slices.ContainsFunc(table, func(r Route) bool { return r.Prefix == everywhere(true) }) && !n.leadsOut(name) {
		return table
	}
	has := make(map[netip.Prefix]bool)
	for _, r := range table {
		has[r.Prefix] = true
	}
	for _, node := range n.top.All() {
		for _, a := range n.all[node.Name] {
			p := single(a)
			if s := n.within[a]; s.IsValid() {
				p = s
			}
			if node.Name != name && a.Is4() && !has[p] {
				has[p] = true
				table = append(table, Route{Prefix: p})
			}
		}
	}
	slices.SortFunc(table, func(a, b Route) int { return ComparePrefixes(a.Prefix, b.Prefix) })
	return table
}

// leadsOut says whether a router is a way out itself.
func (n *network) leadsOut(name string) bool {
	return slices.ContainsFunc(n.top.Routers, func(r vnet.VirtualNode) bool { return r.Name == name && r.NAT != "" })
}

// ospf says on which interfaces of a router to speak OSPF. The router's own
// address serves as its id.
func (n *network) ospf(name string) *OSPF {
	o := &OSPF{RouterID: n.address(name)}
	for _, i := range n.ports[name] {
		if n.peers(i, name, true) {
			o.Interfaces = append(o.Interfaces, i.device)
		} else {
			o.Stubs = append(o.Stubs, i.device)
		}
	}
	slices.Sort(o.Interfaces)
	slices.Sort(o.Stubs)
	return o
}

// beyond are the routes of a router with a protocol to what it will never hear
// of, because only routers that do not speak it lead there.
func (n *network) beyond(from string) []Route {
	heard := n.heard(from, func(nodeInterface) bool { return false })
	table := slices.DeleteFunc(n.routes(from, true), func(r Route) bool {
		return heard[r.Prefix] || r.Prefix.IsSingleIP() && heard[n.within[r.Prefix.Addr()]]
	})
	if len(table) == 0 {
		return nil // what a host without any is observed to have
	}
	return table
}

// heard are the addresses and subnets that a router hears of by its protocol,
// but for those that only ways without some interfaces lead to.
func (n *network) heard(from string, without func(nodeInterface) bool) map[netip.Prefix]bool {
	heard := make(map[netip.Prefix]bool)
	for _, is4 := range []bool{true, false} {
		if n.routers[from].Speaks(is4) == "" {
			continue
		}
		seen := map[string]bool{from: true}
		for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
			for _, i := range n.ports[queue[0]] {
				if i.station != nil || without(i) {
					continue // no adjacency is formed across switches
				}
				n.hears(heard, i, is4)
				if n.peers(i, queue[0], is4) && !seen[i.peer] {
					seen[i.peer] = true
					queue = append(queue, i.peer)
				}
			}
		}
	}
	return heard
}

// hears adds what a router tells of one of its interfaces.
func (n *network) hears(heard map[netip.Prefix]bool, i nodeInterface, is4 bool) {
	if _, numbered := n.numbered(i.near); !numbered && n.address(i.peer).Is4() == is4 {
		heard[single(n.address(i.peer))] = true
	}
	for _, p := range n.endAddresses(i.near) {
		if p.Addr().Is4() == is4 {
			heard[p.Masked()] = true
		}
	}
}

// routes computes a node's table: fewest hops, through routers only, over no link
// that is down. Direct
// neighbours need no route, but for stations outside of their segment's
// subnet. A default route leads to a way out; in a network without one an end
// node sends what goes the most common way by it, so that a leaf has one route
// however large its network.
func (n *network) routes(from string, router bool) []Route {
	table := slices.Concat(n.ordinary(from, router), n.translated(from), n.services(from))
	slices.SortFunc(table, func(a, b Route) int { return ComparePrefixes(a.Prefix, b.Prefix) })
	return table
}

// translated are routes to the addresses that a NAT gives to nodes whose chains end
// here: by the way to those nodes, from where the chain takes what goes there.
func (n *network) translated(node string) (table []Route) {
	var hops map[string]nodeInterface
	for _, c := range n.lease.Request.Chains {
		for _, name := range c.Via {
			f := n.functions[name]
			if !n.sendsBack(c, node) || f == nil || f.Kind != vnet.FunctionNAT || slices.ContainsFunc(table, func(r Route) bool { return r.Prefix == f.Prefix }) {
				continue
			}
			if hops == nil {
				hops = n.firstHops(node)
			}
			if hop, ok := hops[c.From]; ok {
				table = append(table, n.route(f.Prefix, hop))
			}
		}
	}
	return table
}

// sendsBack says whether what a node answers to a chain's packets goes back through it.
func (n *network) sendsBack(c vnet.Chain, node string) bool {
	return c.To == node || slices.Contains(n.top.Balanced(c), node)
}

// services are routes to the services of balancers: by the way to an end of a chain that
// begins here, which takes what goes there.
func (n *network) services(node string) (table []Route) {
	var hops map[string]nodeInterface
	for _, c := range n.lease.Request.Chains {
		balancer, ok := n.top.Balancer(c)
		if !ok || c.From != node {
			continue
		}
		to := single(balancer.Function.Service)
		if hops == nil {
			hops = n.firstHops(node)
		}
		if hop, ok := hops[c.To]; ok && !slices.ContainsFunc(table, func(r Route) bool { return r.Prefix == to }) {
			table = append(table, n.route(to, hop))
		}
	}
	return table
}

// ordinary is that table without what chains bring.
func (n *network) ordinary(from string, router bool) []Route {
	ports := n.ports[from]
	if !router && len(ports) == 1 && ports[0].station == nil {
		return n.gateway(from, ports[0])
	}
	firsts := n.firstHops(from)
	table, uses := n.table(from, firsts, router)
	for _, is4 := range []bool{true, false} {
		out, leads := n.outward(from, firsts)
		if leads = leads && is4; !leads && len(uses[is4]) > 0 {
			out = mostUsed(uses[is4])
		}
		switch to := everywhere(is4); {
		case !router && (leads || len(uses[is4]) > 0):
			table = n.compress(table, n.attached(ports), n.route(to, out))
		case leads:
			table = append(table, n.route(to, out))
		}
	}
	return table
}

// table has a route for each address of the others that is not on-link, and
// counts, by family (of IPv4: true), how many go by each neighbour. Addresses
// of one subnet that go the same way share a route.
func (n *network) table(from string, first map[string]nodeInterface, router bool) (table []Route, uses map[bool]map[nodeInterface]int) {
	on := n.connected(slices.DeleteFunc(slices.Clone(n.ports[from]), func(i nodeInterface) bool { return n.cut[i.near] }))
	led := make(map[netip.Prefix]Route) // to subnets
	uses = make(map[bool]map[nodeInterface]int)
	for _, node := range n.top.All() {
		hop, found := first[node.Name]
		if !found {
			continue
		}
		for _, a := range n.all[node.Name] {
			if a.Is6() && !router && !n.hasIPv6(from) || slices.ContainsFunc(on, func(p netip.Prefix) bool { return p.Contains(a) }) {
				continue
			}
			own := a == n.address(node.Name) && hop.peer == node.Name
			_, numbered := n.numbered(hop.far)
			switch {
			case own && !numbered && (hop.station == nil || n.subnet[n.behind(hop)].Contains(a)):
				// on-link by the address of the port
			case own && !numbered:
				table = append(table, Route{Prefix: single(a), Interface: hop.device})
			default:
				table = n.toward(table, led, a, hop)
				if uses[a.Is4()] == nil {
					uses[a.Is4()] = make(map[nodeInterface]int)
				}
				uses[a.Is4()][nodeInterface{device: hop.device, peer: hop.peer, far: hop.far}]++
			}
		}
	}
	return table, uses
}

// toward adds a route to an address, or, where it is the first of its subnet,
// to all of that.
func (n *network) toward(table []Route, led map[netip.Prefix]Route, a netip.Addr, hop nodeInterface) []Route {
	subnet := n.within[a]
	if !subnet.IsValid() {
		return append(table, n.route(single(a), hop))
	}
	r := n.route(subnet, hop)
	if have, ok := led[subnet]; !ok {
		led[subnet] = r
		return append(table, r)
	} else if have == r {
		return table
	}
	return append(table, n.route(single(a), hop))
}

// gateway is the table of a node with one link: everything goes to the router
// at its far end, if it is one.
func (n *network) gateway(from string, port nodeInterface) []Route {
	if _, forwards := n.routers[port.peer]; !forwards {
		return nil
	}
	table := []Route{n.route(defaultPrefix(n.address(from)), port)}
	if n.hasIPv6(from) {
		table = append(table, n.route(everywhere(false), port))
	}
	return table
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
	return append(list, n.connected(ports)...)
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
		return r.Prefix.Addr().Is4() == way.Prefix.Addr().Is4() && r.Interface == way.Interface && r.Via == way.Via &&
			!slices.ContainsFunc(attached, func(p netip.Prefix) bool { return p.Contains(r.Prefix.Addr()) })
	})
	return append(rest, way)
}

// byDevice orders eth2 before eth10.
func byDevice(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

func (n *network) route(prefix netip.Prefix, i nodeInterface) Route {
	return Route{Prefix: prefix, Via: n.via(i, prefix.Addr().Is4()), Interface: i.device}
}

func defaultPrefix(addr netip.Addr) netip.Prefix { return everywhere(addr.Is4()) }

// everywhere is the prefix of a default route, of IPv4 or of IPv6.
func everywhere(is4 bool) netip.Prefix {
	if is4 {
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
			if n.linkClass[i.near.link] != "" {
				continue // it carries nothing else
			}
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

// across lists the neighbours on an interface: one, or those on a segment; none if
// its link is down. A segment where every port sends to every other is crossed
// once: whoever comes later finds nothing new behind it.
func (n *network) across(i nodeInterface, crossed map[*segment]bool) []nodeInterface {
	if n.cut[i.near] {
		return nil
	}
	if i.station == nil {
		return []nodeInterface{i}
	}
	s := n.segment[n.behind(i)]
	if crossed[s] {
		return nil
	}
	crossed[s] = !s.private && !s.cut
	var list []nodeInterface
	for _, st := range s.stations {
		if st.Node != i.station.Node && n.adjacent(s, *i.station, st) && n.joined(s, *i.station, st) {
			list = append(list, nodeInterface{device: i.device, peer: st.Node, near: i.near, far: linkEnd{st.Link.Name, st.End}, station: i.station})
		}
	}
	return list
}
