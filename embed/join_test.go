package embed

import (
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/embed/rate"
	"sublet/vnet"
)

// Rates and ports of places to join are booked; what does not fit is refused, with
// words. A network keeps its port where it can.
func TestJoinsAreBooked(t *testing.T) {
	sub, cal := waySubstrate(), calendar.New()
	sub.NAT = nil
	sub.Joins = []vnet.Join{{Name: "campus", Host: "h2", Ports: vnet.PortRange{First: 500, Last: 501}, Capacity: 100 * vnet.Mbit}}
	request := func(network string, out vnet.Rate) vnet.Request {
		r := wayRequest(network, out)
		r.Routers = nil
		r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: "out", Join: "campus"})
		return r
	}
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	window := vnet.Window{Start: noon, End: noon.Add(time.Hour)}
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
	first, err := admit(request("first", 60*vnet.Mbit), window)
	if err != nil || first.Nodes["out"] != "h2" || first.Joins["out"] < 500 || first.Joins["out"] > 501 {
		t.Fatalf("%+v, %v", first, err)
	}
	if free := cal.Residual(rate.Join("campus", vnet.Forward).String(), int64(100*vnet.Mbit), window); free != int64(40*vnet.Mbit) {
		t.Errorf("%s are free, not 40Mbit", vnet.Rate(free))
	}
	refused(t, "place to join campus has 40Mbit of 100Mbit free outwards")(admit(request("large", 50*vnet.Mbit), window))
	second, err := admit(request("second", 10*vnet.Mbit), window)
	if err != nil || second.Joins["out"] == first.Joins["out"] {
		t.Fatalf("%+v has the port of %+v, %v", second.Joins, first.Joins, err)
	}
	refused(t, "all ports 500-501 of place to join campus are taken")(admit(request("third", 10*vnet.Mbit), window))
	later := vnet.Window{Start: window.End, End: window.End.Add(time.Hour)}
	if again, err := admit(request("first", 10*vnet.Mbit), later); err != nil || again.Joins["out"] != first.Joins["out"] {
		t.Errorf("an hour later %+v, %v", again.Joins, err)
	}
}
