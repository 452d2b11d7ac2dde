package embed

import (
	"fmt"
	"math"
	"testing"

	"sublet/embed/calendar"
	"sublet/vnet"

	"pgregory.net/rapid"
)

// TestCostsNoMoreThanAnyPlacement: where no link fills up, an embedding costs
// what the best of all placements does, each link over its fewest hops.
func TestCostsNoMoreThanAnyPlacement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sub := flat(7, rapid.IntRange(0, 6).Draw(t, "chords"))
		nodes := rapid.IntRange(2, 6).Draw(t, "nodes")
		r := vnet.Request{Network: "n", Colocate: vnet.ColocateForbidden}
		for i := range nodes {
			r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: fmt.Sprint(i), CPU: 100})
			for j := range i {
				if j == i-1 || rapid.Bool().Draw(t, "joined") {
					b := vnet.Bandwidth{Min: vnet.Rate(rapid.IntRange(1, 20).Draw(t, "Mbit")) * vnet.Mbit}
					b.Max = b.Min
					r.Links = append(r.Links, vnet.VirtualLink{Name: fmt.Sprintf("%d-%d", j, i), Ends: [2]string{fmt.Sprint(j), fmt.Sprint(i)}, Bandwidth: [2]vnet.Bandwidth{b, b}})
				}
			}
		}
		m, err := embedOn(sub, calendar.New(), r, vnet.Window{Start: epoch})
		if err != nil {
			t.Fatal(err)
		}
		cost := 0.0
		for _, l := range r.Links {
			cost += float64(l.Bandwidth[0].Min) * float64(len(m.Links[l.Name]))
		}
		if least := leastOf(sub, r); cost > least*(1+1e-9) {
			t.Fatalf("costs %g, another placement %g", cost, least)
		}
	})
}

// leastOf tries all placements.
func leastOf(sub vnet.Substrate, r vnet.Request) float64 {
	hops, best := hopsOf(sub), math.Inf(1)
	at, used := make([]int, len(r.Nodes)), make([]bool, len(sub.Hosts))
	var place func(v int, cost float64)
	place = func(v int, cost float64) {
		if v == len(at) {
			best = min(best, cost)
			return
		}
		for h := range used {
			if used[h] {
				continue
			}
			used[h], at[v] = true, h
			more := 0.0
			for _, l := range r.Links {
				if l.Ends[1] == r.Nodes[v].Name { // the other was placed before
					var u int
					fmt.Sscan(l.Ends[0], &u)
					more += float64(l.Bandwidth[0].Min) * float64(hops[at[u]][h])
				}
			}
			place(v+1, cost+more)
			used[h] = false
		}
	}
	place(0, 0)
	return best
}

// hopsOf is how far all hosts are from each other (Floyd and Warshall).
func hopsOf(sub vnet.Substrate) [][]int {
	index := map[string]int{}
	hops := make([][]int, len(sub.Hosts))
	for i, h := range sub.Hosts {
		index[string(h.Name)] = i
		for range sub.Hosts {
			hops[i] = append(hops[i], len(sub.Hosts))
		}
	}
	for _, l := range sub.Links {
		a, b := index[l.Ends[0]], index[l.Ends[1]]
		hops[a][b], hops[b][a] = 1, 1
	}
	for k := range hops {
		for i := range hops {
			for j := range hops {
				hops[i][j] = min(hops[i][j], hops[i][k]+hops[k][j])
			}
		}
	}
	return hops
}
