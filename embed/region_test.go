package embed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"sublet/embed/calendar"
	"sublet/embed/verify"
	"sublet/vnet"
	"sublet/vnet/topology"
)

// large is a substrate that is cut into regions.
func large(t *testing.T, name string) vnet.Substrate {
	t.Helper()
	sub, _, err := topology.Named(name)
	if err != nil || len(sub.Hosts)+len(sub.Switches) <= regionFrom {
		t.Fatal(len(sub.Hosts), err)
	}
	return sub
}

// On substrates that are cut into regions, embeddings keep every rule of the
// whole, and a substrate that fills up takes what a search without regions takes.
func TestRegionsKeepTheRules(t *testing.T) {
	for _, name := range []string{"fat-tree:16", "jellyfish:300,12,900,1", "waxman:1200,0.02,0.2,1"} {
		t.Run(name, func(t *testing.T) {
			sub := large(t, name)
			embedder, err := New(sub)
			if err != nil {
				t.Fatal(err)
			}
			cal, random, window := calendar.New(), rand.New(rand.NewPCG(1, 2)), vnet.Window{Start: epoch}
			for i := range 25 {
				r := tangle(fmt.Sprint("n", i), 3+random.IntN(6), random)
				m, ok := embedder.regional(cal, r, window, Options{})
				if !ok {
					t.Fatalf("request %d finds no region", i)
				}
				if i%5 == 0 { // the check is slow on a large substrate
					if err := verify.Mapping(sub, cal, r, window, m); err != nil {
						t.Fatal(err)
					}
				}
				bookings, err := embedder.Bookings(r, window, m)
				if err != nil || cal.Book(bookings...) != nil {
					t.Fatal(bookings, err)
				}
			}
		})
	}
}

// tangle joins each node to the one before and to some others.
func tangle(name string, nodes int, random *rand.Rand) vnet.Request {
	r := vnet.Request{Network: vnet.VNetID(name), Tenant: "t"}
	for i := range nodes {
		r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: fmt.Sprint("v", i), CPU: vnet.Core})
		for j := range i {
			if b := vnet.Static(vnet.Rate(1+random.IntN(50)) * vnet.Mbit); j == i-1 || random.IntN(4) == 0 {
				r.Links = append(r.Links, vnet.VirtualLink{Name: fmt.Sprintf("l%d-%d", j, i), Ends: [2]string{r.Nodes[j].Name, r.Nodes[i].Name}, Bandwidth: [2]vnet.Bandwidth{b, b}})
			}
		}
	}
	return r
}

// A request is tried around the host or site it names; one that names several
// that lie apart, and one that fits nowhere, is looked at on the whole.
func TestRegionsOfNamedPlaces(t *testing.T) {
	sub := large(t, "fat-tree:16")
	embedder, err := New(sub)
	if err != nil {
		t.Fatal(err)
	}
	random, window := rand.New(rand.NewPCG(1, 2)), vnet.Window{Start: epoch}
	r := tangle("n", 3, random)
	r.Nodes[1].Site = "pod9"
	m, ok := embedder.regional(calendar.New(), r, window, Options{})
	if host, _ := sub.HostOf(string(m.Nodes["v1"])); !ok || host.Site != "pod9" {
		t.Errorf("%v, %v", m.Nodes, ok)
	}
	r.Nodes[0].Site = "pod3"
	if _, ok := embedder.regional(calendar.New(), r, window, Options{}); ok {
		t.Error("two pods lie in one region")
	}
	if m, err := embedder.Embed(calendar.New(), r, window, Options{}); err != nil || verify.Mapping(sub, calendar.New(), r, window, m) != nil {
		t.Error(m, err)
	}
	r.Nodes[0].CPU = 5 * vnet.Core
	var infeasible *Infeasible
	if _, err := embedder.Embed(calendar.New(), r, window, Options{}); !errors.As(err, &infeasible) || infeasible.Reasons[0] != "no host at site pod3 has 5 cores free" {
		t.Error(err)
	}
}

// Networks spread over the substrate, but for the objective of energy.
func TestRegionsSpread(t *testing.T) {
	sub := large(t, "fat-tree:16")
	for objective, want := range map[vnet.Objective][2]int{vnet.RevenueOverCost: {4, 17}, vnet.Energy: {1, 2}} {
		embedder, err := New(sub)
		if err != nil {
			t.Fatal(err)
		}
		sites := map[string]bool{}
		for i := range 40 {
			r := tangle(fmt.Sprint("n", i), 1, rand.New(rand.NewPCG(1, 2)))
			r.Objective = objective
			m, ok := embedder.regional(calendar.New(), r, vnet.Window{Start: epoch}, Options{})
			if !ok {
				t.Fatal("no region")
			}
			host, _ := sub.HostOf(string(m.Nodes["v0"]))
			sites[host.Site] = true
		}
		if n := len(sites); n < want[0] || n > want[1] {
			t.Errorf("%s: networks are in %d pods", objective, n)
		}
	}
}
