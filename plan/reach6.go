package plan

import (
	"net/netip"
	"slices"
)

// ipv6 is the first address of IPv6 that a node was given; not valid: none.
func (n *network) ipv6(node string) netip.Addr {
	if i := slices.IndexFunc(n.all[node], netip.Addr.Is6); i >= 0 {
		return n.all[node][i]
	}
	return netip.Addr{}
}

// askedBy6 says whether two nodes that must reach each other must do so by IPv6,
// too: both have addresses, and the planned routes, followed hop by hop, lead from
// each to the other. Machines configure themselves and are not asked.
func (n *network) askedBy6(a, b string) bool {
	for _, p := range [][2]string{{a, b}, {b, a}} {
		if !n.ipv6(p[0]).IsValid() || n.machines[p[0]] || !n.leads6(p[0], p[1]) {
			return false
		}
	}
	return true
}

// leads6 is leads for IPv6. Where a protocol knows the way, it is believed to
// find it; a next hop that cannot be told is none.
func (n *network) leads6(from, to string) bool {
	at, dst := from, n.ipv6(to)
	for range len(n.ports) {
		next, arrives := n.nextHop6(at, to, dst)
		if next == "" || arrives {
			return arrives
		}
		if _, forwards := n.routers[next]; !forwards {
			return false
		}
		at = next
	}
	return false
}

// nextHop6 is the node to which a node sends what is for an address of another;
// arrives: the way from there is known to end at it.
func (n *network) nextHop6(at, to string, dst netip.Addr) (next string, arrives bool) {
	for _, i := range n.ports[at] {
		if n.cut[i.near] || !slices.ContainsFunc(n.endAddresses(i.near), func(p netip.Prefix) bool { return p.Masked().Contains(dst) }) {
			continue
		}
		if i.station != nil {
			return to, n.onSegment(i, to) && !n.overOpenFlow(at, to)
		}
		return to, i.peer == to
	}
	t := n.forwardingOf(at)
	r, ok := t.routes[single(dst)]
	if !ok && (t.heard[single(dst)] || t.heard[n.within[dst]]) {
		return to, true
	}
	for _, p := range []netip.Prefix{n.within[dst], everywhere(false)} {
		if !ok {
			r, ok = t.routes[p]
		}
	}
	if !ok || !n.passable(at, r) {
		return "", false
	}
	next = n.hop6(at, r)
	return next, next == to
}

// hop6 is the node that a route leads to: by its address, or the only one at a
// link by that which its port gives itself.
func (n *network) hop6(at string, r Route) string {
	if node := n.byAddress[r.Via]; node != "" {
		return node
	}
	for _, i := range n.ports[at] {
		if i.device == r.Interface && i.station == nil && r.Via.IsLinkLocalUnicast() {
			return i.peer
		}
	}
	return ""
}
