package plan

import (
	"net/netip"
	"slices"
)

// Conceder is an item whose thing a tenant may change, too. What such an item,
// as it was read back, lacks of the one that is planned by a change that is the
// tenant's own, is conceded: nothing is repaired.
type Conceder interface {
	Item
	// Concede is the item that was read back with what it lacks of target and
	// need not have.
	Concede(target Item) Item
}

// Inside is what a tenant made of an interface in a node and keeps, as it was
// read back. Zero: nothing.
type Inside struct {
	Down   bool // it was set down
	NoIPv6 bool // it has an MTU with which the kernel speaks no IPv6
}

// Lacks says whether the interface has no address, and no route to one, of an
// address's family. What the kernel took away it does not put back, so a plan
// has it put back when the interface is as before.
func (i Inside) Lacks(a netip.Addr) bool { return i.Down || i.NoIPv6 && a.Is6() }

// LeastIPv6 is the smallest MTU with which the kernel speaks IPv6 (RFC 8200,
// section 5).
const LeastIPv6 = 1280

// TenantsNode says whether a namespace is a node's in which its tenant is root.
func TenantsNode(namespace string) bool {
	_, node, ok := ParseNamespace(namespace)
	return ok && !isControlNode(node)
}

// Concede is the link with what its ports lack by a tenant's changes.
func (l VxLink) Concede(target Item) Item {
	for i, e := range target.(VxLink).Ends {
		l.Ends[i].Port = l.Ends[i].Port.concede(e.Port)
		l.Ends[i].Join = l.Ends[i].Join.concede(e.Join)
	}
	return l
}

// concede is the port as it is when the tenant's changes are undone. Of one that
// is down it is not known what else there is to be undone.
func (p *Port) concede(target *Port) *Port {
	if p == nil || p.Inside == (Inside{}) {
		return p
	}
	is := *p
	is.Inside = Inside{}
	if target == nil {
		return &is
	}
	if p.Inside.Down {
		is.Address, is.Peer, is.Subnet, is.Metric, is.More = target.Address, target.Peer, target.Subnet, target.Metric, target.More
		return &is
	}
	is.More = slices.DeleteFunc(slices.Clone(p.More), func(m netip.Prefix) bool { return p.Inside.Lacks(m.Addr()) })
	for _, m := range target.More {
		if p.Inside.Lacks(m.Addr()) {
			is.More = append(is.More, m)
		}
	}
	slices.SortFunc(is.More, ComparePrefixes)
	if len(is.More) == 0 {
		is.More = nil
	}
	return &is
}

// Concede is the routing with the routes that it lacks by a tenant's changes of
// interfaces.
func (r VxRouter) Concede(target Item) Item {
	r.Neighbours = target.(VxRouter).Neighbours // which are entered once
	inside := r.Inside
	r.Inside = nil
	r.Routes = concede(r.Routes, target.(VxRouter).Routes, inside)
	if planned := target.(VxRouter).Classes; len(planned) == len(r.Classes) {
		r.Classes = slices.Clone(r.Classes)
		for i, c := range planned {
			r.Classes[i].Routes = concede(r.Classes[i].Routes, c.Routes, inside)
		}
	}
	return r
}

// concede is the list of routes with those of a planned one that it lacks by what is
// inside.
func concede(is, planned []Route, inside map[string]Inside) []Route {
	has := make(map[netip.Prefix]bool, len(is))
	for _, route := range is {
		has[route.Prefix] = true
	}
	whole := slices.Clone(is)
	for _, route := range planned {
		if inside[route.Interface].Lacks(route.Prefix.Addr()) && !has[route.Prefix] {
			whole = append(whole, route)
		}
	}
	if len(whole) == len(is) {
		return is
	}
	slices.SortFunc(whole, func(a, b Route) int { return ComparePrefixes(a.Prefix, b.Prefix) })
	return whole
}
