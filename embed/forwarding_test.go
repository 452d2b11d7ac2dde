package embed

import (
	"slices"
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// twoSwitches has two hosts at each of two OpenFlow switches that are linked.
func twoSwitches() vnet.Substrate {
	sub := vnet.Substrate{Switches: []string{"s1", "s2"}}
	for i, name := range []vnet.HostID{"h1", "h2", "h3", "h4"} {
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: name, CPU: 4000, Memory: vnet.GiB})
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: "l-" + string(name), Ends: [2]string{string(name), sub.Switches[i/2]}, Capacity: vnet.Gbit})
	}
	sub.Links = append(sub.Links, vnet.SubstrateLink{Name: "trunk", Ends: [2]string{"s1", "s2"}, Capacity: vnet.Gbit})
	for _, name := range sub.Switches {
		sub.OpenFlow = append(sub.OpenFlow, vnet.OpenFlowSwitch{Name: name, Entries: 5, Meters: 3})
	}
	return sub
}

func pairRequest(network string, a, b vnet.HostID) vnet.Request {
	ten := vnet.Bandwidth{Min: 10 * vnet.Mbit, Max: 10 * vnet.Mbit}
	return vnet.Request{Network: vnet.VNetID(network), Colocate: vnet.ColocateForbidden, Topology: vnet.Topology{
		Nodes: []vnet.VirtualNode{{Name: "a", Host: a}, {Name: "b", Host: b}},
		Links: []vnet.VirtualLink{{Name: "l", Ends: [2]string{"a", "b"}, Bandwidth: [2]vnet.Bandwidth{ten, ten}}},
	}}
}

// Entries and meters of OpenFlow switches are booked for each link that passes them;
// a network goes around a switch that has none left, and is refused where there is no
// other way, until they are free.
func TestSwitchesAreBooked(t *testing.T) {
	sub, cal := twoSwitches(), calendar.New()
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
	if _, err := admit(pairRequest("first", "h1", "h2"), window); err != nil {
		t.Fatal(err)
	}
	if n := cal.Peak("entries:s1>", window); n != 2 {
		t.Errorf("%d entries of s1 are booked", n)
	}
	if n := cal.Peak("meters:s1>", window); n != 2 {
		t.Errorf("%d meters of s1 are booked", n)
	}
	second, err := admit(pairRequest("second", "", ""), window)
	if err != nil {
		t.Fatal(err)
	}
	for node, host := range second.Nodes {
		if host != "h3" && host != "h4" {
			t.Errorf("%s is at %s, whose switch has no meter left", node, host)
		}
	}
	refused(t, "switch s2 has 0 of 2 meters free in this window, and the network needs 2")(admit(pairRequest("third", "h3", "h4"), window))
	refused(t, "switch s1 has 0 of 2 meters free in this window, and the network needs 2")(admit(pairRequest("third", "h1", "h3"), window))
	later := vnet.Window{Start: window.End, End: window.End.Add(time.Hour)}
	across, err := admit(pairRequest("third", "h1", "h3"), later)
	if err != nil || len(across.Links["l"]) != 3 {
		t.Fatalf("%+v, %v", across, err)
	}
	if cal.Peak("entries:s1>", later) != 2 || cal.Peak("entries:s2>", later) != 2 {
		t.Error("a link over two switches does not take entries of both")
	}
}

// A slow path that links of leases take bounds what they have together, and is as
// slow as it is.
func TestSlowPathsAreCounted(t *testing.T) {
	sub := twoSwitches()
	sub.OpenFlow[0].SlowPath = vnet.SlowPath{Actions: []string{"meter"}, PPS: 2000, Latency: 200 * time.Microsecond} // 14.4 Mbit/s
	request := pairRequest("n", "h1", "h2")
	refused(t, "switch s1 has 14400kbit of 14400kbit free on its slow path in this window, and the network needs 20Mbit")(embedOn(sub, calendar.New(), request, vnet.Window{}))
	sub.OpenFlow[0].SlowPath.Actions = []string{"normal"} // no packet of a lease meets it
	if _, err := embedOn(sub, calendar.New(), request, vnet.Window{}); err != nil {
		t.Error(err)
	}
	sub.OpenFlow[0].SlowPath = vnet.SlowPath{Actions: []string{"output"}, PPS: 1e6, Latency: 200 * time.Microsecond}
	slow, fast := sub.WithDelays(), twoSwitches().WithDelays()
	if more := slow.Links[0].Latency + slow.Links[1].Latency - fast.Links[0].Latency - fast.Links[1].Latency; more != 200*time.Microsecond {
		t.Errorf("a slow path of 200us adds %s", more)
	}
}

// Where all switches speak OpenFlow, a link takes whichever path has what it needs; where
// one forwards by itself, all take its shortest.
func TestEntriesChoosePaths(t *testing.T) {
	ring := func() vnet.Substrate {
		sub := vnet.Substrate{Switches: []string{"s1", "s2", "s3"}}
		for i, name := range []vnet.HostID{"h1", "h2"} {
			sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: name, CPU: 4000, Memory: vnet.GiB})
			sub.Links = append(sub.Links, vnet.SubstrateLink{Name: "l-" + string(name), Ends: [2]string{string(name), sub.Switches[i]}, Capacity: vnet.Gbit})
		}
		for i, name := range sub.Switches {
			next := sub.Switches[(i+1)%3]
			sub.Links = append(sub.Links, vnet.SubstrateLink{Name: name + "-" + next, Ends: [2]string{name, next}, Capacity: 15 * vnet.Mbit})
			sub.OpenFlow = append(sub.OpenFlow, vnet.OpenFlowSwitch{Name: name, Entries: 9, Meters: 9})
		}
		return sub
	}
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	window := vnet.Window{Start: noon, End: noon.Add(time.Hour)}
	for _, c := range []struct {
		speak int
		round bool
	}{{3, true}, {2, false}} {
		sub, cal := ring(), calendar.New()
		sub.OpenFlow = sub.OpenFlow[:c.speak]
		request := pairRequest("first", "h1", "h2")
		first, err := embedOn(sub, cal, request, window)
		if err != nil || !slices.Equal(first.Links["l"], vnet.Path{"l-h1", "s1-s2", "l-h2"}) {
			t.Fatalf("%v, %v", first.Links, err)
		}
		bookings, err := bookingsOn(sub, request, window, first)
		if err != nil {
			t.Fatal(err)
		}
		if err := cal.Book(bookings...); err != nil {
			t.Fatal(err)
		}
		second, err := embedOn(sub, cal, pairRequest("second", "h1", "h2"), window)
		if (err == nil) != c.round || err == nil && !slices.Equal(second.Links["l"], vnet.Path{"l-h1", "s3-s1", "s2-s3", "l-h2"}) {
			t.Errorf("with %d switches of OpenFlow the second is at %v, %v", c.speak, second.Links, err)
		}
	}
}
