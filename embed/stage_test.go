package embed

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// staged is a link of 300 Mbit/s that takes 800 for the second hour, when a
// third node comes too.
func staged() vnet.Request {
	r := pair(vnet.VirtualNode{Name: "n1", Host: "h1", CPU: vnet.Core}, vnet.VirtualNode{Name: "n2", Host: "h3"}, both(vnet.Static(300*vnet.Mbit)))
	fast := [2]vnet.Bandwidth{vnet.Static(800 * vnet.Mbit), vnet.Static(300 * vnet.Mbit)}
	r.Stages = []vnet.Stage{
		{Name: "transfer", After: time.Hour, Links: map[string][2]vnet.Bandwidth{"back": fast}, Add: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "n3", Host: "h3", Memory: vnet.GiB, Exclusive: true}},
			Links: []vnet.VirtualLink{{Name: "near", Ends: [2]string{"n3", "n2"}, Bandwidth: [2]vnet.Bandwidth{vnet.Static(vnet.Mbit), {}}}},
		}},
		{Name: "after", After: 2 * time.Hour, Remove: []string{"n3"}, Links: map[string][2]vnet.Bandwidth{"back": both(vnet.Static(300 * vnet.Mbit)).Bandwidth}},
	}
	return r
}

// TestBookings: each element is booked by stage, in both directions; spans of
// equal amount are one booking.
func TestBookings(t *testing.T) {
	w := vnet.Window{Start: epoch, End: epoch.Add(3 * time.Hour)}
	mapping, err := embedOn(lyonNancy(), calendar.New(), staged(), w)
	if err != nil {
		t.Fatal(err)
	}
	got, err := bookingsOn(lyonNancy(), staged(), w, mapping)
	if err != nil {
		t.Fatal(err)
	}
	hour := func(from, to int) vnet.Window {
		return vnet.Window{Start: epoch.Add(time.Duration(from) * time.Hour), End: epoch.Add(time.Duration(to) * time.Hour)}
	}
	low, high := int64(300*vnet.Mbit), int64(800*vnet.Mbit)
	want := []calendar.Booking{
		{Key: "cpu:h1", Amount: 1000, Window: hour(0, 3)},
		{Key: "guests:h1", Amount: 1, Window: hour(0, 3)},
		{Key: "carrying:h1", Amount: 2 * low, Window: hour(0, 1)},
		{Key: "carrying:h1", Amount: low + high, Window: hour(1, 2)},
		{Key: "carrying:h1", Amount: 2 * low, Window: hour(2, 3)},
		{Key: "memory:h3", Amount: int64(vnet.GiB), Window: hour(1, 2)},
		{Key: "guests:h3", Amount: 1, Window: hour(0, 1)},
		{Key: "guests:h3", Amount: WholeHost, Window: hour(1, 2)},
		{Key: "guests:h3", Amount: 1, Window: hour(2, 3)},
		{Key: "carrying:h3", Amount: 2 * low, Window: hour(0, 1)},
		{Key: "carrying:h3", Amount: low + high + 2*int64(vnet.Mbit), Window: hour(1, 2)}, // both ends of a link are there
		{Key: "carrying:h3", Amount: 2 * low, Window: hour(2, 3)},
		{Key: "host:h3>", Amount: int64(vnet.Mbit), Window: hour(1, 2)},
		{Key: "h1-s1>", Amount: low, Window: hour(0, 1)},
		{Key: "h1-s1>", Amount: high, Window: hour(1, 2)},
		{Key: "h1-s1>", Amount: low, Window: hour(2, 3)},
		{Key: "h1-s1<", Amount: low, Window: hour(0, 3)},
		{Key: "s1-s2>", Amount: low, Window: hour(0, 1)},
		{Key: "s1-s2>", Amount: high, Window: hour(1, 2)},
		{Key: "s1-s2>", Amount: low, Window: hour(2, 3)},
		{Key: "s1-s2<", Amount: low, Window: hour(0, 3)},
		{Key: "h3-s2>", Amount: low, Window: hour(0, 3)}, // towards s2: the link's reverse
		{Key: "h3-s2<", Amount: low, Window: hour(0, 1)},
		{Key: "h3-s2<", Amount: high, Window: hour(1, 2)},
		{Key: "h3-s2<", Amount: low, Window: hour(2, 3)},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Bookings:\n%v\nwant:\n%v", got, want)
	}
}

// TestStagesAreAdmittedApart: a stage that does not fit refuses the whole; the
// same stage in a window that ends before it, or beside a booking that ends
// before it, does not.
func TestStagesAreAdmittedApart(t *testing.T) {
	sub := lyonNancy()
	other := pair(vnet.VirtualNode{Name: "a", Host: "h2"}, vnet.VirtualNode{Name: "b", Host: "h3"}, both(vnet.Static(400*vnet.Mbit)))
	hours := func(n int) time.Time { return epoch.Add(time.Duration(n) * time.Hour) }
	for _, c := range []struct {
		name   string
		other  vnet.Window
		window vnet.Window
		ok     bool
	}{
		{"together", vnet.Window{Start: hours(0), End: hours(9)}, vnet.Window{Start: hours(0)}, false},
		{"in the stage", vnet.Window{Start: hours(1), End: hours(2)}, vnet.Window{Start: hours(0)}, false},
		{"an instant of it", vnet.Window{Start: hours(0), End: hours(1).Add(1)}, vnet.Window{Start: hours(0)}, false},
		{"before it", vnet.Window{Start: hours(0), End: hours(1)}, vnet.Window{Start: hours(0)}, true},
		{"after it", vnet.Window{Start: hours(2)}, vnet.Window{Start: hours(0)}, true},
		{"ended before it", vnet.Window{Start: hours(0)}, vnet.Window{Start: hours(0), End: hours(1)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cal := calendar.New()
			if err := admit(t, sub, cal, other, c.other); err != nil {
				t.Fatal(err)
			}
			err := admit(t, sub, cal, staged(), c.window)
			if infeasible := new(Infeasible); (err == nil) != c.ok || err != nil && !errors.As(err, &infeasible) {
				t.Errorf("admit = %v, want ok %v", err, c.ok)
			}
		})
	}
}

// TestMalformed: requests, substrates and mappings that contradict themselves
// are errors, not refusals.
func TestMalformed(t *testing.T) {
	w := vnet.Window{Start: epoch}
	n := []vnet.VirtualNode{{Name: "n1"}, {Name: "n2"}}
	link := func(a, b string) []vnet.VirtualLink { return []vnet.VirtualLink{{Name: "l", Ends: [2]string{a, b}}} }
	top := func(nodes []vnet.VirtualNode, links []vnet.VirtualLink) vnet.Request {
		return vnet.Request{Topology: vnet.Topology{Nodes: nodes, Links: links}}
	}
	moved := top(n, link("n1", "n2"))
	moved.Stages = []vnet.Stage{{Remove: []string{"l"}, After: 1}, {Add: vnet.Topology{Links: link("n2", "n1")}, After: 2}}
	for name, r := range map[string]vnet.Request{
		"unknown end": top(n, link("n1", "n3")),
		"loop":        top(n, link("n1", "n1")),
		"same node":   top(append(n, n[0]), nil),
		"same link":   top(n, append(link("n1", "n2"), link("n2", "n1")...)),
		"moved link":  moved,
	} {
		_, err := embedOn(lyonNancy(), calendar.New(), r, w)
		if infeasible := new(Infeasible); err == nil || errors.As(err, &infeasible) {
			t.Errorf("%s: Embed = %v", name, err)
		}
		if _, err := bookingsOn(lyonNancy(), r, w, vnet.Mapping{}); err == nil {
			t.Errorf("%s: booked", name)
		}
	}
	if _, err := embedOn(lyonNancy(), calendar.New(), top(n, nil), vnet.Window{Start: epoch, End: epoch}); err == nil {
		t.Error("embedded in no time")
	}
	sub := lyonNancy()
	sub.Links[0].Ends[0] = "h7"
	if _, err := embedOn(sub, calendar.New(), top(n, nil), w); err == nil {
		t.Error("embedded in a substrate with a loose end")
	}
	lost := vnet.Mapping{Nodes: map[string]vnet.HostID{"n1": "h1", "n2": "h2"}, Links: map[string]vnet.Path{"l": {"h1-s1"}}}
	if _, err := bookingsOn(lyonNancy(), top(n, link("n1", "n2")), w, lost); err == nil {
		t.Error("booked a path that ends nowhere")
	}
}

// TestStagesOnCommandAreBookedAtMost: until the next stage at the clock the most
// that any stage takes is booked, once; from when one has begun, what it takes.
func TestStagesOnCommandAreBookedAtMost(t *testing.T) {
	w := vnet.Window{Start: epoch, End: epoch.Add(3 * time.Hour)}
	peaks := func(r vnet.Request) (list []int64) {
		mapping, err := embedOn(lyonNancy(), calendar.New(), r, w)
		if err != nil {
			t.Fatal(err)
		}
		bookings, err := bookingsOn(lyonNancy(), r, w, mapping)
		if err != nil {
			t.Fatal(err)
		}
		cal := calendar.New()
		if err := cal.Book(bookings...); err != nil {
			t.Fatal(err)
		}
		for hour := range 3 {
			at := epoch.Add(time.Duration(hour) * time.Hour)
			list = append(list, cal.Peak("h1-s1>", vnet.Window{Start: at, End: at.Add(time.Hour)})/int64(vnet.Mbit))
		}
		return list
	}
	r := staged()
	r.Stages[0].OnCommand, r.Stages[0].After = true, 0
	if got, want := peaks(r), []int64{800, 800, 300}; !reflect.DeepEqual(got, want) {
		t.Errorf("before the command %v is booked, want %v", got, want)
	}
	r.Stages[0].After = time.Hour
	if got, want := peaks(r), []int64{300, 800, 300}; !reflect.DeepEqual(got, want) {
		t.Errorf("after it %v is booked, want %v", got, want)
	}
}
