package lease

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// TestMaintenanceIsBooked: nothing new goes where there is maintenance, for as long;
// it is offered another time; what is there stays and is named.
func TestMaintenanceIsBooked(t *testing.T) {
	var sub vnet.Substrate
	for _, words := range [][]string{{"host", "A"}, {"host", "B"}, {"host", "C"}, {"link", "A", "B", "1000"}, {"link", "B", "C", "1000"}, {"link", "A", "C", "1000"}} {
		describe(&sub, words)
	}
	b := New(sub)
	ask := func(name string, at vnet.HostID, start time.Time, length time.Duration) vnet.Request {
		return vnet.Request{Tenant: "t", Network: vnet.VNetID(name), Start: start, For: length, Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "x", Host: at}, {Name: "y", Host: "C"}},
			Links: []vnet.VirtualLink{{Name: "xy", Ends: [2]string{"x", "y"}}},
		}}
	}
	was, err := b.Admit(noon, ask("was", "A", noon, 0), 0)
	if err != nil {
		t.Fatal(err)
	}
	from := noon.Add(2 * time.Hour)
	m := vnet.Maintenance{ID: "m", Host: "A", Start: from, End: from.Add(time.Hour)}
	list, err := b.AddMaintenance(noon, m, false)
	if err != nil || len(list) != 1 || list[0].Lease.ID() != was.ID() || len(list[0].Stays) == 0 {
		t.Fatalf("it concerns %v, %v", list, err)
	}
	for name, r := range map[string]vnet.Request{
		"before": ask("before", "A", noon, 2*time.Hour), "after": ask("after", "A", m.End, time.Hour), "elsewhere": ask("elsewhere", "B", from, time.Hour),
	} {
		if _, err := b.Admit(noon, r, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = b.Admit(noon, ask("during", "A", from.Add(-time.Minute), 30*time.Minute), 0)
	var no *vnet.Rejection
	if !errors.As(err, &no) || !strings.Contains(strings.Join(no.Reasons, " "), "maintenance of host A") {
		t.Fatalf("during maintenance: %v", err)
	}
	later := false
	for _, o := range no.Offers {
		later = later || o.Request.Start.Equal(m.End)
	}
	if !later {
		t.Errorf("nothing is offered from its end on: %+v", no.Offers)
	}
	_, err = b.Admit(noon, ask("long", "A", noon, 0), 0)
	shorter := false
	if errors.As(err, &no) {
		for _, o := range no.Offers {
			shorter = shorter || o.Request.For == 2*time.Hour
		}
	}
	if !shorter {
		t.Errorf("one without an end is not offered to end before it: %v", err)
	}
	free := ask("free", "", from, time.Hour)
	if l, err := b.Admit(noon, free, 0); err != nil || l.Mapping.Nodes["x"] == "A" {
		t.Errorf("one that may go anywhere: %v, %v", l.Mapping.Nodes, err)
	}
	if err := b.SetLinkDown(noon, "A-C", true); err != nil {
		t.Fatal(err)
	}
	if l, _ := b.Lease(was.ID()); l.Lost != nil {
		t.Errorf("what is there is lost by a failure beside maintenance: %+v", l.Lost)
	}
	other := b.Substrate()
	other.Maintenance = nil
	b.KeepMeasured(&other)
	if len(other.Maintenance) != 1 {
		t.Error("another substrate forgets maintenance")
	}
	if _, _, err := b.RemoveMaintenance(noon, "none"); !errors.Is(err, ErrNoElement) {
		t.Errorf("what is not planned is removed: %v", err)
	}
	if _, list, err := b.RemoveMaintenance(noon, "m"); err != nil || len(list) == 0 {
		t.Errorf("removed for %v, %v", list, err)
	}
	if _, err := b.Admit(noon, ask("during", "A", from, time.Hour), 0); err != nil {
		t.Errorf("after it was removed: %v", err)
	}
	if _, err := b.AddMaintenance(noon, vnet.Maintenance{ID: "n", Link: "Z", Start: from, End: m.End}, false); !errors.Is(err, ErrNoElement) {
		t.Errorf("a link that is not there: %v", err)
	}
}

// TestMaintenanceOfALink: what may take another way does.
func TestMaintenanceOfALink(t *testing.T) {
	var sub vnet.Substrate
	for _, words := range [][]string{{"host", "A"}, {"host", "B"}, {"switch", "S"}, {"link", "A", "B", "1000"}, {"link", "A", "S", "1000"}, {"link", "S", "B", "1000"}} {
		describe(&sub, words)
	}
	b := New(sub)
	if _, err := b.AddMaintenance(noon, vnet.Maintenance{ID: "m", Link: "A-B", Start: noon.Add(time.Hour), End: noon.Add(2 * time.Hour)}, false); err != nil {
		t.Fatal(err)
	}
	for start, hops := range map[time.Duration]int{0: 1, time.Hour: 2, 2 * time.Hour: 1} {
		l, err := b.Admit(noon, vnet.Request{Tenant: "t", Network: vnet.VNetID("n" + start.String()[:1]), Start: noon.Add(start), For: time.Hour, Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "x", Host: "A"}, {Name: "y", Host: "B"}},
			Links: []vnet.VirtualLink{{Name: "xy", Ends: [2]string{"x", "y"}}},
		}}, 0)
		if err != nil || len(l.Mapping.Links["xy"]) != hops {
			t.Errorf("from %s on: %v, %v", start, l.Mapping.Links, err)
		}
	}
	if len(b.Maintenance(noon.Add(2*time.Hour))) != 0 {
		t.Error("it does not end")
	}
}
