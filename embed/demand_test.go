package embed

import (
	"errors"
	"reflect"
	"testing"

	"sublet/embed/rate"
	"sublet/vnet"
)

// TestRatesOfTheWorkedExample: three leases between two hosts share one link
// of 2 Gbit/s (Anhalt, thesis, section 5.2.4); the third ends.
func TestRatesOfTheWorkedExample(t *testing.T) {
	mapping := vnet.Mapping{Nodes: map[string]vnet.HostID{"n1": "h1", "n2": "h2"}, Links: map[string]vnet.Path{"back": {"h1-s1", "h2-s1"}}}
	lease := func(low, high vnet.Rate) Tenancy {
		r := pair(vnet.VirtualNode{Name: "n1"}, vnet.VirtualNode{Name: "n2"}, both(vnet.Bandwidth{Min: low * vnet.Mbit, Max: high * vnet.Mbit}))
		return Tenancy{Topology: r.Topology, Mapping: mapping}
	}
	running := []Tenancy{lease(100, 500), lease(800, 1500), lease(300, 300)}
	for _, want := range [][]vnet.Rate{{500, 1200, 300}, {500, 1500}} {
		got, err := ratesOn(lyonNancy(), running[:len(want)])
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range want {
			if r *= vnet.Mbit; got[i]["back"] != [2]vnet.Rate{r, r} {
				t.Errorf("lease %d of %d gets %v, want %v", i+1, len(want), got[i]["back"], r)
			}
		}
	}
}

// TestRatesByDirection: the directions of a link are apart, a link inside a
// host has the host's capacity, best effort gets nothing, and what does not
// fit is named.
func TestRatesByDirection(t *testing.T) {
	top := vnet.Topology{Nodes: []vnet.VirtualNode{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Links: []vnet.VirtualLink{
		{Name: "out", Ends: [2]string{"a", "c"}, Bandwidth: [2]vnet.Bandwidth{{Max: vnet.Unbounded}, {Max: 100}}},
		{Name: "in", Ends: [2]string{"c", "a"}, Bandwidth: [2]vnet.Bandwidth{vnet.Static(400 * vnet.Mbit), vnet.Static(300 * vnet.Mbit)}},
		{Name: "near", Ends: [2]string{"a", "b"}, Bandwidth: [2]vnet.Bandwidth{{Max: vnet.Unbounded}, {}}},
		{Name: "idle", Ends: [2]string{"a", "c"}},
	}}
	far, back := vnet.Path{"h1-s1", "s1-s2", "h3-s2"}, vnet.Path{"h3-s2", "s1-s2", "h1-s1"}
	lease := Tenancy{top, vnet.Mapping{
		Nodes: map[string]vnet.HostID{"a": "h1", "b": "h1", "c": "h3"},
		Links: map[string]vnet.Path{"out": far, "in": back, "near": {}, "idle": far},
	}}
	got, err := ratesOn(lyonNancy(), []Tenancy{lease})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]vnet.Rate{
		"out": {700 * vnet.Mbit, 100}, "in": {400 * vnet.Mbit, 300 * vnet.Mbit}, "near": {vnet.Gbit, 0}, "idle": {},
	}
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("Rates = %v, want %v", got[0], want)
	}
	top.Links[1].Bandwidth[vnet.Reverse] = vnet.Static(1100 * vnet.Mbit)
	infeasible := new(rate.Infeasible)
	if _, err := ratesOn(lyonNancy(), []Tenancy{lease}); !errors.As(err, &infeasible) || infeasible.Element != (rate.Element{Link: "s1-s2"}) {
		t.Errorf("Rates = %v, want infeasible on s1-s2", err)
	}
	lease.Mapping.Links["out"] = far[:2]
	if _, err := demandsOn(lyonNancy(), top, lease.Mapping); err == nil {
		t.Error("a path that ends at a switch has demands")
	}
}
