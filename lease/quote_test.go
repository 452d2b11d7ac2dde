package lease

import (
	"testing"
	"time"

	"sublet/vnet"
)

// TestHostsAreInTheCalendar: what is booked of a host's processors and memory
// next week shows, and that one network has it for itself; on one host too.
func TestHostsAreInTheCalendar(t *testing.T) {
	b := New(vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1", CPU: 4 * vnet.Core, Memory: vnet.GiB}}})
	monday := noon.Add(7 * 24 * time.Hour)
	ask := func(name string, start time.Time, n vnet.VirtualNode) {
		t.Helper()
		r := vnet.Request{Network: vnet.VNetID(name), Tenant: "t", Start: start, For: time.Hour, Topology: vnet.Topology{Nodes: []vnet.VirtualNode{n}}}
		if _, err := b.Admit(noon, r, 0); err != nil {
			t.Fatal(err)
		}
	}
	ask("half", monday, vnet.VirtualNode{Name: "a", CPU: 2 * vnet.Core, Memory: vnet.GiB})
	ask("more", monday.Add(30*time.Minute), vnet.VirtualNode{Name: "a", CPU: vnet.Core})
	ask("nothing", monday.Add(10*time.Minute), vnet.VirtualNode{Name: "a"})
	ask("alone", monday.Add(2*time.Hour), vnet.VirtualNode{Name: "a", Exclusive: true})
	loads := b.HostLoads(vnet.Window{Start: noon, End: monday.Add(24 * time.Hour)})
	if len(loads) != 1 || loads[0].Host != "h1" || loads[0].CPU != 4*vnet.Core || loads[0].Memory != vnet.GiB {
		t.Fatalf("%+v", loads)
	}
	want := []vnet.HostStep{
		{At: noon},
		{At: monday, CPU: 2 * vnet.Core, Memory: vnet.GiB},
		{At: monday.Add(30 * time.Minute), CPU: 3 * vnet.Core, Memory: vnet.GiB},
		{At: monday.Add(60 * time.Minute), CPU: vnet.Core},
		{At: monday.Add(90 * time.Minute)},
		{At: monday.Add(2 * time.Hour), Exclusive: true},
		{At: monday.Add(3 * time.Hour)},
	}
	if got := loads[0].Steps; len(got) != len(want) {
		t.Fatalf("steps %+v", got)
	}
	for i, step := range loads[0].Steps {
		if step != want[i] {
			t.Errorf("step %d is %+v, not %+v", i, step, want[i])
		}
	}
	if peak := loads[0].Peak(vnet.Window{Start: monday, End: monday.Add(time.Hour)}); peak.CPU != 3*vnet.Core || peak.Memory != vnet.GiB || peak.Exclusive {
		t.Errorf("peak %+v", peak)
	}
}

// TestQuoteOfANameInUse is an answer, not a conflict.
func TestQuoteOfANameInUse(t *testing.T) {
	b := New(vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1", CPU: 4 * vnet.Core, Memory: vnet.GiB}}})
	r := vnet.Request{Network: "n", Tenant: "t", Topology: vnet.Topology{Nodes: []vnet.VirtualNode{{Name: "a", CPU: vnet.Core}}}}
	if _, err := b.Admit(noon, r, 0); err != nil {
		t.Fatal(err)
	}
	if quote, err := b.Quote(noon, r); err != nil || quote.Mapping.Nodes["a"] != "h1" {
		t.Errorf("%+v, %v", quote, err)
	}
}
