package lease

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// lineWithCampus is a line with a way out, of two addresses.
func lineWithCampus() vnet.Substrate {
	sub := line()
	sub.NAT = []vnet.NAT{{
		Name: "campus", Host: "h1", Interface: "eth2", Capacity: 100 * vnet.Mbit, Via: netip.MustParseAddr("192.0.2.1"),
		Pool: vnet.AddrRange{First: netip.MustParseAddr("192.0.2.10"), Last: netip.MustParseAddr("192.0.2.11")},
	}}
	return sub
}

// TestWaysOutKeepTheirAddresses where a network is embedded anew, though another
// address would be chosen for it now.
func TestWaysOutKeepTheirAddresses(t *testing.T) {
	sub := lineWithCampus()
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
	to, ok := book.view(noon).with(book.solver, NewEffort(Budget, nil)).findMove(e, without, inPlace)
	if !ok || to.to.Outside["out"] != second.Mapping.Outside["out"] {
		t.Errorf("%v becomes %v", second.Mapping.Outside, to.to.Outside)
	}
}

// TestOffersOfWaysOut: who is refused a way out is offered another one, less rate,
// and another time.
func TestOffersOfWaysOut(t *testing.T) {
	sub := line()
	for i, name := range []string{"campus", "beach"} {
		a := netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + 2*i)})
		sub.NAT = append(sub.NAT, vnet.NAT{
			Name: name, Host: "h1", Interface: "eth2", Capacity: 10 * vnet.Mbit, Via: netip.MustParseAddr("192.0.2.1"),
			Pool: vnet.AddrRange{First: a, Last: a.Next()},
		})
	}
	ask := func(name vnet.VNetID, way string, mbit int, length time.Duration) vnet.Request {
		r := transfer{mbit: mbit}.request(0)
		r.Network, r.Nodes, r.For = name, r.Nodes[:1], length
		r.Routers, r.Links[0].Ends[1] = []vnet.VirtualNode{{Name: "out", NAT: way}}, "out"
		return r
	}
	book := New(sub)
	if _, err := book.Admit(noon, ask("a", "campus", 6, time.Hour), 0); err != nil {
		t.Fatal(err)
	}
	_, err := book.Admit(noon, ask("b", "campus", 6, time.Hour), 0)
	var no *vnet.Rejection
	if !errors.As(err, &no) {
		t.Fatalf("admitted, or %v", err)
	}
	offered := make(map[vnet.Axis]string)
	for _, o := range no.Offers {
		for _, c := range o.Changes {
			offered[o.Axes[0]] += c.What + " " + c.To + " instead of " + c.From + "\n"
		}
	}
	for axis, says := range map[vnet.Axis]string{
		vnet.AxisSite: "way out of out beach instead of campus", vnet.AxisMinimum: "4Mbit instead of 6Mbit", vnet.AxisStart: "T13:00:00Z instead of",
	} {
		if !strings.Contains(offered[axis], says) {
			t.Errorf("along %s: %q does not say %q", axis, offered[axis], says)
		}
	}
}

// TestAnyWayOut: a router that takes any way out has the first one with room, and
// keeps it when its rates are changed. Where none has, the refusal speaks of one.
func TestAnyWayOut(t *testing.T) {
	sub := line()
	for i, name := range []string{"small", "large"} {
		a := netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + i)})
		sub.NAT = append(sub.NAT, vnet.NAT{
			Name: name, Host: "h1", Interface: "eth2", Capacity: vnet.Rate(1+9*i) * vnet.Mbit, Via: netip.MustParseAddr("192.0.2.1"),
			Pool: vnet.AddrRange{First: a, Last: a}, Publish: vnet.PortRange{First: 80, Last: 80},
		})
	}
	ask := func(name vnet.VNetID, mbit int) vnet.Request {
		r := transfer{mbit: mbit}.request(0)
		r.Network, r.Nodes = name, r.Nodes[:1]
		r.Routers, r.Links[0].Ends[1] = []vnet.VirtualNode{{Name: "out", NAT: vnet.AnyNAT}}, "out"
		return r
	}
	book := New(sub)
	for _, c := range []struct {
		name vnet.VNetID
		mbit int
		way  string
	}{{"a", 5, "large"}, {"b", 1, "small"}} {
		l, err := book.Admit(noon, ask(c.name, c.mbit), 0)
		must(err)
		if got := l.Request.Routers[0].NAT; got != c.way || l.Mapping.Outside["out"] != sub.NAT[map[string]int{"small": 0, "large": 1}[c.way]].Pool.First {
			t.Errorf("%s goes out by %s, %v", c.name, got, l.Mapping.Outside)
		}
		var booked vnet.Rate
		for _, load := range book.view(noon).OutsideLoads(vnet.Window{Start: noon, End: noon.Add(1)}) {
			if load.Link == "nat:"+c.way && load.From == "h1" {
				booked = load.Steps[0].Booked
			}
		}
		if booked != vnet.Rate(c.mbit)*vnet.Mbit {
			t.Errorf("%s has %s booked", c.way, booked)
		}
		if is, err := revised(l.Request, ask(c.name, c.mbit+1)); err != nil || is.Routers[0].NAT != c.way {
			t.Errorf("%s is changed to %v, %v", c.name, is.Routers, err)
		}
	}
	var no *vnet.Rejection
	if _, err := book.Admit(noon, ask("c", 1), 0); !errors.As(err, &no) || !strings.Contains(no.Error(), "way out small") {
		t.Errorf("a third: %v", err)
	}
}

// TestWaysOutKeepTheirHosts: a host is not drained of what has its interface, and who
// drains it is told why.
func TestWaysOutKeepTheirHosts(t *testing.T) {
	sub := lineWithCampus()
	book := New(sub)
	r := transfer{mbit: 1}.request(0)
	r.Nodes = r.Nodes[:1]
	r.Nodes[0].Host, r.Routers, r.Links[0].Ends[1] = "h2", []vnet.VirtualNode{{Name: "out", NAT: vnet.AnyNAT}}, "out"
	_, err := book.Admit(noon, r, 0)
	must(err)
	list, err := book.SetHostDrained(noon, "h1", true)
	must(err)
	want := "out stays there: way out campus is on that host and on no other one"
	if len(list) != 1 || len(list[0].Stays) != 1 || list[0].Stays[0] != want {
		t.Errorf("it says %+v, want %s", list, want)
	}
}
