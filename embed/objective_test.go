package embed

import (
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/embed/verify"
	"sublet/vnet"
)

// square is four hosts in a ring; the links of h1 are shorter to h2.
func square() vnet.Substrate {
	var sub vnet.Substrate
	names := []string{"h1", "h2", "h3", "h4"}
	for i, n := range names {
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(n), CPU: 4 * vnet.Core, Memory: vnet.GiB})
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: n, Ends: [2]string{n, names[(i+1)%4]}, Capacity: vnet.Gbit})
	}
	return sub
}

// TestObjectives: beside a network that uses the link between h1 and h2, a link
// between the same hosts goes the short way for least cost, around for load
// balance, and a network with a choice goes where hosts are awake for energy.
func TestObjectives(t *testing.T) {
	at := func(name string, host vnet.HostID) vnet.VirtualNode {
		return vnet.VirtualNode{Name: name, Host: host, CPU: vnet.Core}
	}
	before := pair(at("a", "h1"), at("b", "h2"), both(vnet.Static(900*vnet.Mbit)))
	sub, cal, w := square(), calendar.New(), vnet.Window{Start: epoch}
	if err := admit(t, sub, cal, before, w); err != nil {
		t.Fatal(err)
	}
	for objective, hops := range map[vnet.Objective]int{"": 1, vnet.RevenueOverCost: 1, vnet.LoadBalance: 3, vnet.Energy: 1} {
		r := pair(at("a", "h1"), at("b", "h2"), both(vnet.Static(50*vnet.Mbit)))
		r.Objective = objective
		if m, err := embedOn(sub, cal, r, w); err != nil || len(m.Links["back"]) != hops {
			t.Errorf("%q: %v, %v; want %d hops", objective, m.Links, err, hops)
		}
	}
	for objective, want := range map[vnet.Objective]int{vnet.LoadBalance: 0, vnet.Energy: 2} {
		r := pair(at("a", ""), at("b", ""), both(vnet.Static(50*vnet.Mbit)))
		r.Objective, r.Colocate = objective, vnet.ColocateForbidden
		m, err := embedOn(sub, cal, r, w)
		awake := 0
		for _, h := range m.Nodes {
			if h == "h1" || h == "h2" {
				awake++
			}
		}
		if err != nil || awake != want {
			t.Errorf("%s: nodes %v, %v; want %d of them on h1 and h2", objective, m.Nodes, err, want)
		}
	}
}

// TestMoreBudget: more of it never gives a dearer embedding here, and much more
// a cheaper one; the same budget and seed give the same.
func TestMoreBudget(t *testing.T) {
	embedder, err := New(flat(60, 60))
	if err != nil {
		t.Fatal(err)
	}
	r := mesh(20, 50, 11)
	r.Colocate = vnet.ColocateForbidden
	w := vnet.Window{Start: epoch, End: epoch.Add(time.Hour)}
	cost := func(budget time.Duration) (sum vnet.Rate) {
		m, err := embedder.Embed(calendar.New(), r, w, Options{Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		if err := verify.Mapping(embedder.sub, calendar.New(), r, w, m); err != nil {
			t.Fatal(err)
		}
		for _, l := range r.Links {
			sum += vnet.Rate(len(m.Links[l.Name])) * (l.Bandwidth[0].Min + l.Bandwidth[1].Min)
		}
		return sum
	}
	last := cost(100 * time.Microsecond)
	first := last
	for _, budget := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 80 * time.Millisecond} {
		now := cost(budget)
		if again := cost(budget); again != now {
			t.Errorf("budget %s: cost %d, then %d", budget, now, again)
		}
		if now > last {
			t.Errorf("budget %s: cost %d, above the %d of less", budget, now, last)
		}
		last = now
	}
	if last >= first {
		t.Errorf("cost %d of the largest budget, %d of the smallest", last, first)
	}
}

// TestApart: nodes that want to be apart are, also where one host has room
// for all; more nodes than hosts are refused.
func TestApart(t *testing.T) {
	r := mesh(4, 4, 1)
	r.Colocate = vnet.ColocateForbidden
	for i := range r.Nodes {
		r.Nodes[i].CPU, r.Nodes[i].Memory = 0, 0
	}
	w := vnet.Window{Start: epoch}
	m, err := embedOn(square(), calendar.New(), r, w)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify.Mapping(square(), calendar.New(), r, w, m); err != nil {
		t.Error(err)
	}
	r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: "more"})
	if m, err := embedOn(square(), calendar.New(), r, w); err == nil {
		t.Errorf("five nodes apart on four hosts: %v", m.Nodes)
	}
}
