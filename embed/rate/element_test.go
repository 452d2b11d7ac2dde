package rate

import (
	"errors"
	"testing"

	"sublet/vnet"
)

// TestAll: a virtual link gets the smallest of its elements' rates, and the
// directions of a link do not touch each other.
func TestAll(t *testing.T) {
	sub := vnet.Substrate{
		Hosts: []vnet.SubstrateNode{{Name: "h1", Capacity: vnet.Gbit}, {Name: "h2"}},
		Links: []vnet.SubstrateLink{
			{Name: "wide", Ends: [2]string{"h1", "s1"}, Capacity: 2 * vnet.Gbit},
			{Name: "half", Ends: [2]string{"s1", "h2"}, Capacity: 2 * vnet.Gbit, Share: 50},
		},
	}
	open := vnet.Bandwidth{Max: vnet.Unbounded}
	there := []Element{{"wide", vnet.Forward}, {"half", vnet.Forward}}
	demands := []Demand{
		{open, there},
		{vnet.Static(300 * vnet.Mbit), there[:1]},
		{open, []Element{{"half", vnet.Reverse}, {"wide", vnet.Reverse}}},
		{open, []Element{Inside("h1", vnet.Forward)}},
		{open, []Element{Inside("h2", vnet.Forward)}},
		{vnet.Bandwidth{}, there},
	}
	got, err := All(sub, demands)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range rates(vnet.Gbit, 300*vnet.Mbit, vnet.Gbit, vnet.Gbit, vnet.DefaultHostCapacity, 0) {
		if got[i] != want {
			t.Errorf("demand %d gets %v, want %v", i, got[i], want)
		}
	}
	demands[1].Bandwidth = vnet.Static(3 * vnet.Gbit)
	infeasible := new(Infeasible)
	if _, err := All(sub, demands); !errors.As(err, &infeasible) || infeasible.Element != there[0] {
		t.Errorf("All = %v, want infeasible on %v", err, there[0])
	}
	for _, wrong := range []Demand{{open, nil}, {open, []Element{{"narrow", vnet.Forward}}}} {
		if _, err := All(sub, []Demand{wrong}); err == nil || errors.As(err, &infeasible) && infeasible.Capacity == 0 {
			t.Errorf("All of %v = %v", wrong, err)
		}
	}
}
