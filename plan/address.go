package plan

import (
	"net/netip"
	"slices"

	"sublet/vnet"
)

// endAddresses are those that a port has of its own, by which its link or
// segment is numbered; the first of IPv4 first. Empty: none.
func (n *network) endAddresses(e linkEnd) []netip.Prefix {
	list := slices.Clone(n.lease.LinkAddresses[e.link][e.end])
	slices.SortStableFunc(list, func(a, b netip.Prefix) int { return a.Addr().BitLen() - b.Addr().BitLen() })
	return list
}

// numbered is the subnet of IPv4 that a port is in by an address of its own.
func (n *network) numbered(e linkEnd) (subnet netip.Prefix, ok bool) {
	for _, p := range n.endAddresses(e) {
		return p.Masked(), p.Addr().Is4()
	}
	return netip.Prefix{}, false
}

// endAddress is the IPv4 address of a node at one of its ports.
func (n *network) endAddress(e linkEnd, node string) netip.Addr {
	if list := n.endAddresses(e); len(list) > 0 && list[0].Addr().Is4() {
		return list[0].Addr()
	}
	return n.address(node)
}

// addressPort gives a port its addresses. One of a numbered link has them of its own;
// else the node's is on all ports, with a route to what is at the other end.
func (n *network) addressPort(p *Port, at linkEnd, node, peer string) {
	list := n.endAddresses(at)
	p.Address = n.endAddress(at, node)
	if subnet, ok := n.numbered(at); ok {
		p.Subnet, list = subnet, list[1:]
	} else if n.segment[peer] == nil {
		p.Peer = n.address(peer)
	} else if p.Subnet = n.subnet[peer]; !p.Subnet.IsValid() {
		p.Subnet = single(p.Address)
	}
	if n.homes[node] == at {
		list = append(list, single(n.address(node)))
	}
	slices.SortFunc(list, ComparePrefixes)
	if len(list) > 0 {
		p.More = list
	}
}

// ComparePrefixes orders prefixes by address, then by length.
func ComparePrefixes(a, b netip.Prefix) int {
	if less := a.Addr().Compare(b.Addr()); less != 0 {
		return less
	}
	return a.Bits() - b.Bits()
}

// knowAddresses finds whose addresses are whose, and the port that has a node's
// own where all its links of the stage are numbered by others.
func (n *network) knowAddresses(union vnet.Topology) {
	n.all, n.within, n.byAddress = make(map[string][]netip.Addr), make(map[netip.Addr]netip.Prefix), make(map[netip.Addr]string)
	for _, node := range union.All() {
		n.all[node.Name] = []netip.Addr{n.address(node.Name)}
		n.byAddress[n.address(node.Name)] = node.Name
	}
	for _, l := range n.top.Links {
		for end, node := range l.Ends {
			for _, p := range n.endAddresses(linkEnd{l.Name, end}) {
				n.byAddress[p.Addr()], n.within[p.Addr()] = node, p.Masked()
				n.v6 = n.v6 || p.Addr().Is6()
				if !slices.Contains(n.all[node], p.Addr()) {
					n.all[node] = append(n.all[node], p.Addr())
				}
			}
		}
	}
	n.homes = n.findHomes()
}

// findHomes gives nodes whose own address no port of theirs would have their
// first port.
func (n *network) findHomes() map[string]linkEnd {
	homes, has := make(map[string]linkEnd), make(map[string]bool)
	for _, l := range n.top.Links {
		for end, node := range l.Ends {
			at := linkEnd{l.Name, end}
			if _, ok := homes[node]; !ok && n.segment[node] == nil {
				homes[node] = at
			}
			_, numbered := n.numbered(at)
			has[node] = has[node] || !numbered || n.within[n.address(node)].IsValid()
		}
	}
	for node := range homes {
		if has[node] {
			delete(homes, node)
		}
	}
	return homes
}

// hasIPv6 says that a node has addresses of IPv6 that were stated or chosen.
func (n *network) hasIPv6(node string) bool {
	return n.v6 && slices.ContainsFunc(n.all[node], netip.Addr.Is6)
}

// via is the address of a neighbour behind an interface: of its port there,
// else its own; of IPv6 that which the port gives itself.
func (n *network) via(i nodeInterface, is4 bool) netip.Addr {
	if is4 {
		return n.endAddress(i.far, i.peer)
	}
	for _, p := range n.endAddresses(i.far) {
		if p.Addr().Is6() {
			return p.Addr()
		}
	}
	return vnet.LinkLocal(Port{Namespace: Namespace(n.lease.ID(), i.peer), Interface: n.device[i.far]}.Hardware())
}

// connected are the subnets that a node's interfaces are in by addresses of
// their own.
func (n *network) connected(ports []nodeInterface) (list []netip.Prefix) {
	for _, i := range ports {
		for _, p := range n.endAddresses(i.near) {
			list = append(list, p.Masked())
		}
	}
	return list
}
