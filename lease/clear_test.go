package lease

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// ground is a substrate in words of the conversations.
func ground(rows ...string) (sub vnet.Substrate) {
	for _, row := range rows {
		describe(&sub, strings.Fields(row))
	}
	return sub
}

// twoNodes asks for a link between x and y.
func twoNodes(name string, x, y vnet.HostID, start time.Time, length time.Duration) vnet.Request {
	return vnet.Request{Tenant: "t", Network: vnet.VNetID(name), Start: start, For: length, Topology: vnet.Topology{
		Nodes: []vnet.VirtualNode{{Name: "x", Host: x}, {Name: "y", Host: y}},
		Links: []vnet.VirtualLink{{Name: "xy", Ends: [2]string{"x", "y"}, Bandwidth: [2]vnet.Bandwidth{vnet.Static(vnet.Mbit), vnet.Static(vnet.Mbit)}}},
	}}
}

func admitted(t *testing.T, b *Book, r vnet.Request) vnet.LeaseID {
	t.Helper()
	l, err := b.Admit(noon, r, 0)
	if err != nil {
		t.Fatalf("%s: %v", r.Network, err)
	}
	return l.ID()
}

// applied lets hosts have done all that is planned.
func applied(t *testing.T, b *Book) {
	t.Helper()
	for range 4 {
		for host, p := range b.Plans() {
			if err := b.Report(noon, report.Report{Host: host, Revision: p.Revision}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// becomes finds what becomes of a lease.
func becomes(t *testing.T, list []Cleared, id vnet.LeaseID) Cleared {
	t.Helper()
	i := slices.IndexFunc(list, func(c Cleared) bool { return c.Lease.ID() == id })
	if i < 0 {
		t.Fatalf("%s is not named", id)
	}
	return list[i]
}

// TestMaintenanceTakesLinksAway: links of running networks take other ways before it
// begins; what has no other way stays, and is offered another time.
func TestMaintenanceTakesLinksAway(t *testing.T) {
	b := New(ground("host A", "host B", "switch S", "link A B 1000", "link A S 1000", "link S B 1000"))
	able := admitted(t, b, twoNodes("able", "A", "B", noon, 0))
	r := twoNodes("stuck", "A", "B", noon, 4*time.Hour)
	r.Topology.Links[0].Bandwidth = [2]vnet.Bandwidth{vnet.Static(600 * vnet.Mbit), vnet.Static(600 * vnet.Mbit)}
	stuck := admitted(t, b, r)
	r.Network = "other"
	if other := admitted(t, b, r); len(mappingOf(t, b, other).Links["xy"]) != 2 || len(mappingOf(t, b, stuck).Links["xy"]) != 1 {
		t.Fatal("they are not where the test wants them")
	}
	applied(t, b)
	m := vnet.Maintenance{ID: "m", Link: "A-B", Start: noon.Add(time.Hour), End: noon.Add(2 * time.Hour)}
	was := b.Leases()
	tried, err := b.AddMaintenance(noon, m, true)
	if err != nil || len(b.Maintenance(noon)) != 0 || !reflect.DeepEqual(was, b.Leases()) {
		t.Errorf("a try changes the book: %v", err)
	}
	list, err := b.AddMaintenance(noon, m, false)
	if err != nil || len(list) != 2 || len(tried) != 2 {
		t.Fatalf("%+v, %v; tried %+v", list, err, tried)
	}
	for i := range list {
		if !reflect.DeepEqual(list[i].Moved, tried[i].Moved) || !reflect.DeepEqual(list[i].Stays, tried[i].Stays) {
			t.Errorf("tried %+v, done %+v", tried[i], list[i])
		}
	}
	if c := becomes(t, list, able); c.Stays != nil || !slices.Equal(c.Moved.Links, []string{"xy"}) || c.Moved.Interruption != SwitchTime {
		t.Errorf("the able: %+v", c)
	}
	applied(t, b)
	if l, _ := b.Lease(able); len(l.Mapping.Links["xy"]) != 2 || l.Move != nil || l.State != vnet.Running {
		t.Errorf("the able is %s by %v, moving %+v", l.State, l.Mapping.Links, l.Move)
	}
	c := becomes(t, list, stuck)
	if c.Stays == nil || !strings.Contains(strings.Join(c.Stays, " "), "no other place") {
		t.Errorf("the stuck: %+v", c)
	}
	if now := b.Concerned(m); len(now) != 1 || now[0].ID() != stuck {
		t.Errorf("it still concerns %v", now)
	}
	offersStart(t, b, c.Lease, m, m.End)
	if l, _ := b.Lease(stuck); l.State != vnet.Running || len(l.Mapping.Links["xy"]) != 1 {
		t.Errorf("the stuck is %s", l.State)
	}
}

func drained(t *testing.T, b *Book, host vnet.HostID, is bool) {
	t.Helper()
	if _, err := b.SetHostDrained(noon, host, is); err != nil {
		t.Fatal(err)
	}
}

func mappingOf(t *testing.T, b *Book, id vnet.LeaseID) vnet.Mapping {
	t.Helper()
	l, ok := b.Lease(id)
	if !ok {
		t.Fatalf("no lease %s", id)
	}
	return l.Mapping
}

// offersStart wants an offer from an instant on, and that each would be admitted in
// the lease's place.
func offersStart(t *testing.T, b *Book, l vnet.Lease, m vnet.Maintenance, start time.Time) {
	t.Helper()
	offers, err := b.View(noon, func(read func()) { read() }).Instead(l, m, new(Solver), NewEffort(Budget, nil))
	if err != nil || !slices.ContainsFunc(offers, func(o vnet.Offer) bool { return o.Request.Start.Equal(start) }) {
		t.Errorf("%s is offered %+v, %v", l.ID(), offers, err)
	}
	for _, o := range offers {
		trial, err := b.copy(noon)
		if err != nil {
			t.Fatal(err)
		}
		if err := trial.Release(noon, l.ID()); err != nil {
			t.Fatal(err)
		}
		o.Request.Network = "instead"
		if _, err := trial.Admit(noon, o.Request, 0); err != nil {
			t.Errorf("%s: %v", o.Words(), err)
		}
	}
}

// TestMaintenanceTakesAwayWhatHasNotBegun: elsewhere, or to another time that its
// request allows; what neither may is offered one. Nodes of running networks stay,
// and their owners could have them elsewhere anew.
func TestMaintenanceTakesAwayWhatHasNotBegun(t *testing.T) {
	b := New(ground("host A", "host B", "host C", "link A B 1000", "link B C 1000", "link A C 1000"))
	from := noon.Add(2 * time.Hour)
	m := vnet.Maintenance{ID: "m", Host: "A", Start: from, End: from.Add(time.Hour)}
	r := twoNodes("free", "", "B", from, time.Hour)
	r.Colocate = vnet.ColocateForbidden
	drained(t, b, "C", true) // so that it begins on A
	free := admitted(t, b, r)
	drained(t, b, "C", false)
	r = twoNodes("patient", "A", "C", from, 30*time.Minute)
	r.Movable, r.Before = true, from.Add(2*time.Hour)
	patient := admitted(t, b, r)
	bound := admitted(t, b, twoNodes("bound", "A", "C", from, 30*time.Minute))
	runs := admitted(t, b, twoNodes("runs", "A", "C", noon, 0))
	applied(t, b)
	list, err := b.AddMaintenance(noon, m, false)
	if err != nil {
		t.Fatal(err)
	}
	if c := becomes(t, list, free); c.Stays != nil || mappingOf(t, b, free).Nodes["x"] != "C" {
		t.Errorf("the free one: %+v", c)
	}
	if l, _ := b.Lease(patient); !l.Window.Start.Equal(m.End) || !becomes(t, list, patient).Moved.Start.Equal(m.End) {
		t.Errorf("the patient one begins at %s", l.Window.Start)
	}
	c := becomes(t, list, bound)
	if l, _ := b.Lease(bound); c.Stays == nil || !l.Window.Start.Equal(from) {
		t.Errorf("the bound one: %+v", c)
	}
	offersStart(t, b, c.Lease, m, m.End)
	if c := becomes(t, list, runs); c.Stays == nil || mappingOf(t, b, runs).Nodes["x"] != "A" {
		t.Errorf("a node of a running network went: %+v", c)
	}
	if left := b.Concerned(m); len(left) != 2 {
		t.Errorf("it still concerns %d leases", len(left))
	}
	if err := b.Tick(m.End); err != nil {
		t.Fatal(err)
	}
	if l, _ := b.Lease(patient); l.State == vnet.Booked {
		t.Errorf("the patient one did not begin: %s", l.State)
	}
}

// TestLookingForLaterTimesIsBounded: what tenants let wait longest costs the book no
// more than so much; what is left stays.
func TestLookingForLaterTimesIsBounded(t *testing.T) {
	b := New(ground("host A", "host C", "link A C 1000"))
	from := noon.Add(2 * time.Hour)
	m := vnet.Maintenance{ID: "m", Host: "A", Start: from, End: from.Add(time.Hour)}
	r := twoNodes("patient", "A", "C", from, 30*time.Minute)
	r.Movable, r.Before = true, from.Add(2*time.Hour)
	admitted(t, b, r)
	if err := b.planMaintenance(noon, m); err != nil {
		t.Fatal(err)
	}
	e := b.concerned(m)[0]
	spent := NewEffort(mostLater, nil)
	for !spent.Over() {
		spent.Spend(1)
	}
	if c, err := b.clearOne(noon, e, m, spent); err != nil || c.Stays == nil {
		t.Errorf("with nothing left: %+v, %v", c, err)
	}
	if c, err := b.clearOne(noon, e, m, NewEffort(mostLater, nil)); err != nil || c.Stays != nil {
		t.Errorf("with all left: %+v, %v", c, err)
	}
}

// TestRunningNodesAreOfferedAnew: who has a node where there is maintenance, and
// never asked for that host, could have the same elsewhere.
func TestRunningNodesAreOfferedAnew(t *testing.T) {
	b := New(ground("host A", "host B", "link A B 1000"))
	r := twoNodes("n", "", "B", noon, time.Hour)
	r.Colocate = vnet.ColocateForbidden
	id := admitted(t, b, r)
	sub := ground("host A", "host B", "host C", "link A B 1000", "link B C 1000")
	if err := b.SetSubstrate(noon, sub); err != nil {
		t.Fatal(err)
	}
	m := vnet.Maintenance{ID: "m", Host: "A", Start: noon.Add(time.Minute), End: noon.Add(2 * time.Hour)}
	list, err := b.AddMaintenance(noon, m, false)
	if err != nil || becomes(t, list, id).Stays == nil {
		t.Fatalf("%+v, %v", list, err)
	}
	offers, err := b.View(noon, func(read func()) { read() }).Instead(list[0].Lease, m, new(Solver), NewEffort(Budget, nil))
	if err != nil || len(offers) != 1 || len(offers[0].Changes) != 0 || !strings.Contains(offers[0].Words(), "anew") {
		t.Errorf("offered: %+v, %v", offers, err)
	}
}

// TestMaintenanceOfAHostThatPasses: links that only pass a host are told, too, and
// go another way.
func TestMaintenanceOfAHostThatPasses(t *testing.T) {
	b := New(ground("host A", "host B", "host C", "host D", "link A B 1000", "link B C 1000", "link A D 1000", "link D C 1000"))
	id := admitted(t, b, twoNodes("n", "A", "C", noon, 0))
	applied(t, b)
	by := vnet.HostID("B")
	if mappingOf(t, b, id).Links["xy"][0] != "A-B" {
		by = "D"
	}
	m := vnet.Maintenance{ID: "m", Host: by, Start: noon.Add(time.Hour), End: noon.Add(2 * time.Hour)}
	if list := b.Concerned(m); len(list) != 1 {
		t.Errorf("it concerns %v", list)
	}
	list, err := b.AddMaintenance(noon, m, false)
	if err != nil || becomes(t, list, id).Stays != nil || len(b.Concerned(m)) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}
