package embed

import (
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// A link takes a queue in each direction at an OpenFlow switch that has queues: of the
// port by which it leaves, the smallest that holds its maximum. A network is refused where
// those are taken, or all are too small.
func TestQueuesAreBooked(t *testing.T) {
	sub, cal := twoSwitches(), calendar.New()
	for i := range sub.OpenFlow {
		sub.OpenFlow[i].Meters, sub.OpenFlow[i].Ports = 0, map[string]uint32{}
	}
	for i, ports := range [][]string{{"l-h1", "l-h2", "trunk"}, {"l-h3", "l-h4", "trunk"}} {
		o := &sub.OpenFlow[i]
		for n, link := range ports {
			o.Ports[link] = uint32(n + 1)
			o.Queues = append(o.Queues, vnet.SwitchQueue{Link: link, Queue: 1, Rate: 10 * vnet.Mbit}, vnet.SwitchQueue{Link: link, Queue: 2, Rate: 20 * vnet.Mbit})
		}
	}
	sub.OpenFlow[1].Queues = sub.OpenFlow[1].Queues[:4] // none at the trunk
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	window := vnet.Window{Start: noon, End: noon.Add(time.Hour)}
	admit := func(r vnet.Request) (vnet.Mapping, error) {
		m, err := embedOn(sub, cal, r, window)
		if err != nil {
			return m, err
		}
		bookings, err := bookingsOn(sub, r, window, m)
		if err != nil {
			t.Fatal(err)
		}
		return m, cal.Book(bookings...)
	}
	of := func(back vnet.Rate) vnet.Request {
		r := pairRequest("net", "h1", "h2")
		r.Topology.Links[0].Bandwidth[vnet.Reverse] = vnet.Static(back)
		return r
	}
	if _, err := admit(of(12 * vnet.Mbit)); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int64{"queues:s1/l-h2/10Mbit>": 1, "queues:s1/l-h1/20Mbit>": 1, "queues:s1/l-h1/10Mbit>": 0, "meters:s1>": 0, "entries:s1>": 2} {
		if n := cal.Peak(key, window); n != want {
			t.Errorf("%d of %s are booked instead of %d", n, key, want)
		}
	}
	refused(t, "switch s1 has 0 of 1 queues of 10Mbit at link l-h2 free in this window, and the network needs 1")(admit(of(5 * vnet.Mbit)))
	refused(t, "switch s1 has queues of 10Mbit, 20Mbit at link l-h1, and none for the max of a link of the network: state a smaller one")(admit(of(21 * vnet.Mbit)))
	refused(t, "switch s2 has no queues at link trunk, which the network's links would need there")(admit(pairRequest("net", "h3", "h2")))
	capacities, err := New(sub)
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := capacities.Capacities()["queues:s1/l-h1/0bit>"]; ok {
		t.Errorf("%d queues that are none may be booked", n)
	}
}
