package embed

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/embed/rate"
	"sublet/vnet"
)

func waySubstrate() vnet.Substrate {
	return vnet.Substrate{
		Hosts: []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2"}},
		Links: []vnet.SubstrateLink{{Name: "wire", Ends: [2]string{"h1", "h2"}, Capacity: vnet.Gbit}},
		NAT: []vnet.NAT{{
			Name: "campus", Host: "h2", Interface: "eth2", Capacity: 100 * vnet.Mbit,
			Pool:    vnet.AddrRange{First: netip.MustParseAddr("192.0.2.10"), Last: netip.MustParseAddr("192.0.2.11")},
			Publish: vnet.PortRange{First: 8000, Last: 8999},
		}},
	}
}

// wayRequest has a node and a router out; so much must get out, and half in.
func wayRequest(network string, out vnet.Rate) vnet.Request {
	return vnet.Request{Network: vnet.VNetID(network), Topology: vnet.Topology{
		Nodes:   []vnet.VirtualNode{{Name: "web", Host: "h1"}},
		Routers: []vnet.VirtualNode{{Name: "out", NAT: "campus", Protocol: vnet.ProtocolStatic}},
		Links: []vnet.VirtualLink{{Name: "up", Ends: [2]string{"web", "out"}, Bandwidth: [2]vnet.Bandwidth{
			{Min: out, Max: vnet.Unbounded}, {Min: out / 2, Max: vnet.Unbounded},
		}}},
	}}
}

// What gets out is booked in each direction, and an address for as long as the
// router is there; what does not fit is refused, with words, until it does.
func TestWaysOutAreBooked(t *testing.T) {
	sub, cal := waySubstrate(), calendar.New()
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	hour := func(from int) vnet.Window {
		return vnet.Window{Start: noon.Add(time.Duration(from) * time.Hour), End: noon.Add(time.Duration(from+1) * time.Hour)}
	}
	admit := func(r vnet.Request, w vnet.Window) (vnet.Mapping, error) {
		m, err := embedOn(sub, cal, r, w)
		if err != nil {
			return m, err
		}
		bookings, err := bookingsOn(sub, r, w, m)
		if err != nil {
			t.Fatal(err)
		}
		return m, cal.Book(bookings...)
	}
	first, err := admit(wayRequest("first", 60*vnet.Mbit), hour(0))
	if err != nil || first.Nodes["out"] != "h2" || !sub.NAT[0].Pool.Contains(first.Outside["out"]) {
		t.Fatalf("%+v, %v", first, err)
	}
	for dir, want := range map[vnet.Direction]int64{vnet.Forward: 40, vnet.Reverse: 70} {
		if free := cal.Residual(rate.Outside("campus", dir).String(), int64(100*vnet.Mbit), hour(0)); free != want*int64(vnet.Mbit) {
			t.Errorf("direction %d has %s free, not %dMbit", dir, vnet.Rate(free), want)
		}
	}
	refused(t, "40Mbit of 100Mbit free outwards")(admit(wayRequest("large", 50*vnet.Mbit), hour(0)))
	second, err := admit(wayRequest("second", 40*vnet.Mbit), hour(0))
	if err != nil || second.Outside["out"] == first.Outside["out"] {
		t.Fatalf("%+v beside %+v, %v", second, first, err)
	}
	refused(t, "all 2 addresses")(admit(wayRequest("third", 0), hour(0)))
	if _, err := admit(wayRequest("third", 100*vnet.Mbit), hour(1)); err != nil {
		t.Errorf("an hour later: %v", err)
	}
	published := wayRequest("published", 0)
	published.Routers[0].Publish = []vnet.Publish{{Outside: 80, Node: "web", Port: 80}}
	refused(t, "not 80")(admit(published, hour(2)))
	unknown := wayRequest("unknown", 0)
	unknown.Routers[0].NAT = "beach"
	refused(t, `no way out "beach"`)(admit(unknown, hour(2)))
	anywhere := wayRequest("anywhere", 0)
	anywhere.Routers[0].NAT = vnet.AnyNAT
	if _, err := embedOn(vnet.Substrate{Hosts: waySubstrate().Hosts}, calendar.New(), anywhere, vnet.Window{Start: time.Unix(0, 0)}); err == nil || !strings.HasSuffix(err.Error(), "offers no way out") {
		t.Errorf("any way out of none: %v", err)
	}
}

// TestPublishedPortsStayOffered: a substrate on which a router would publish what
// is not offered any more does not carry it.
func TestPublishedPortsStayOffered(t *testing.T) {
	sub, r, w := waySubstrate(), wayRequest("net", vnet.Mbit), vnet.Window{Start: time.Unix(0, 0)}
	r.Routers[0].Publish = []vnet.Publish{{Outside: 8080, Node: "web", Port: 80}}
	m, err := embedOn(sub, calendar.New(), r, w)
	if err != nil {
		t.Fatal(err)
	}
	for first, offered := range map[uint16]bool{8080: true, 8081: false} {
		sub := waySubstrate()
		sub.NAT[0].Publish.First = first
		if _, err := bookingsOn(sub, r, w, m); offered != (err == nil) {
			t.Errorf("ports from %d on: %v", first, err)
		}
	}
}

func refused(t *testing.T, why string) func(vnet.Mapping, error) {
	return func(_ vnet.Mapping, err error) {
		t.Helper()
		var no *Infeasible
		if !errors.As(err, &no) || !strings.Contains(fmt.Sprint(no.Reasons), why) {
			t.Errorf("%v: want a refusal that says %q", err, why)
		}
	}
}

// Rates above minima share the capacity of a way out as they share a link's.
func TestRatesOutside(t *testing.T) {
	sub := waySubstrate()
	var running []Tenancy
	for i := range 2 {
		r := wayRequest(fmt.Sprint(i), 10*vnet.Mbit)
		m, err := embedOn(sub, calendar.New(), r, vnet.Window{Start: time.Unix(0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, Tenancy{r.Topology, m})
	}
	rates, err := ratesOn(sub, running)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range rates {
		for dir, others := range [2]vnet.Rate{10 * vnet.Mbit, 5 * vnet.Mbit} { // the other keeps its minimum
			if most := 100*vnet.Mbit - others; of["up"][dir] != most {
				t.Errorf("direction %d has %s, not %s", dir, of["up"][dir], most)
			}
		}
	}
}
