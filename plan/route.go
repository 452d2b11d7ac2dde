package plan

import (
	"cmp"
	"net/netip"
	"slices"

	"sublet/vnet"
)

// router gives a virtual node its routing.
func (n *network) router(node vnet.VirtualNode) VxRouter {
	protocol, isRouter := n.routers[node.Name]
	r := VxRouter{Lease: n.lease.ID(), Node: node.Name, Forward: isRouter}
	switch protocol {
	case vnet.ProtocolOSPF:
		r.OSPF, r.Routes = n.ospf(node.Name), n.beyond(node.Name)
	case vnet.ProtocolNone:
	default:
		r.Routes = n.routes(node.Name, isRouter)
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
	heard := make(map[netip.Addr]bool)
	seen := map[string]bool{from: true}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, i := range n.ports[queue[0]] {
			heard[n.address(i.peer)] = true
			if n.routers[i.peer] == vnet.ProtocolOSPF && !seen[i.peer] {
				seen[i.peer] = true
				queue = append(queue, i.peer)
			}
		}
	}
	table := slices.DeleteFunc(n.routes(from, true), func(r Route) bool { return heard[r.Prefix.Addr()] })
	if len(table) == 0 {
		return nil // what a host without any is observed to have
	}
	return table
}

// routes computes a node's table: fewest hops, through routers only. Direct
// neighbours need no route. An end node sends what goes the most common way
// by a default route, so that a leaf has one route however large its network.
func (n *network) routes(from string, router bool) []Route {
	ports := n.ports[from]
	if !router && len(ports) == 1 {
		return n.gateway(from, ports[0])
	}
	var table []Route
	uses := make(map[string]int)
	for name, first := range n.firstHops(from) {
		if first.peer != name {
			addr := n.address(name)
			table = append(table, n.route(netip.PrefixFrom(addr, addr.BitLen()), first))
			uses[first.device]++
		}
	}
	if !router && len(table) > 0 {
		table = n.compress(table, ports, uses, defaultPrefix(n.address(from)))
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

// compress replaces the routes by the most used interface with a default one.
func (n *network) compress(table []Route, ports []nodeInterface, uses map[string]int, prefix netip.Prefix) []Route {
	common := slices.MaxFunc(ports, func(a, b nodeInterface) int { return cmp.Compare(uses[a.device], uses[b.device]) })
	rest := slices.DeleteFunc(table, func(r Route) bool { return r.Interface == common.device })
	return append(rest, n.route(prefix, common))
}

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
	queue := []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if _, forwards := n.routers[at]; at != from && !forwards {
			continue
		}
		for _, i := range n.ports[at] {
			if _, seen := first[i.peer]; seen || i.peer == from {
				continue
			}
			if at != from {
				first[i.peer] = first[at]
			} else {
				first[i.peer] = i
			}
			queue = append(queue, i.peer)
		}
	}
	return first
}
