package lease

import (
	"net/netip"
	"testing"

	"sublet/vnet"
)

// TestWaysOutKeepTheirAddresses where a network is embedded anew, though another
// address would be chosen for it now.
func TestWaysOutKeepTheirAddresses(t *testing.T) {
	sub := line()
	sub.NAT = []vnet.NAT{{
		Name: "campus", Host: "h1", Interface: "eth2", Capacity: 100 * vnet.Mbit, Via: netip.MustParseAddr("192.0.2.1"),
		Pool: vnet.AddrRange{First: netip.MustParseAddr("192.0.2.10"), Last: netip.MustParseAddr("192.0.2.11")},
	}}
	book := New(sub)
	admit := func(name vnet.VNetID) vnet.Lease {
		r := transfer{mbit: 1}.request(0)
		r.Network, r.Nodes = name, r.Nodes[:1]
		r.Routers, r.Links[0].Ends[1] = []vnet.VirtualNode{{Name: "out", NAT: "campus"}}, "out"
		l, err := book.Admit(noon, r, 0)
		must(err)
		return l
	}
	first, second := admit("a"), admit("e") // whose names lead to one address
	must(book.Release(noon, first.ID()))
	e := book.entries[second.ID()]
	without := book.calendar.Clone()
	must(without.Release(e.bookings...))
	to, ok := book.view(noon).with(book.solver, NewEffort(Budget, nil)).findMove(e, without, keepingNodes)
	if !ok || to.to.Outside["out"] != second.Mapping.Outside["out"] {
		t.Errorf("%v becomes %v", second.Mapping.Outside, to.to.Outside)
	}
}
