package flow

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/embed/graph"
	"sublet/vnet"
)

// square is four hosts in a ring, with 100 and 60 left from a by b and by d.
func square(t testing.TB) Substrate {
	return made(t, vnet.Substrate{
		Hosts: []vnet.SubstrateNode{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}},
		Links: []vnet.SubstrateLink{
			{Name: "ab", Ends: [2]string{"a", "b"}, Capacity: 100, Latency: time.Millisecond},
			{Name: "bc", Ends: [2]string{"b", "c"}, Capacity: 100, Latency: time.Millisecond},
			{Name: "ad", Ends: [2]string{"a", "d"}, Capacity: 60, Latency: 5 * time.Millisecond},
			{Name: "dc", Ends: [2]string{"d", "c"}, Capacity: 60, Latency: 5 * time.Millisecond},
		},
	})
}

// made is an empty substrate.
func made(t testing.TB, sub vnet.Substrate) Substrate {
	g, err := graph.New(sub)
	if err != nil {
		t.Fatal(err)
	}
	return Substrate{Graph: g, Left: func(a graph.Arc) []int64 { return []int64{int64(sub.Links[a.Link()].Capacity)} }}
}

func demand(from, to int, rate int64) Link {
	return Link{From: from, To: to, Need: [2][]int64{{rate}, {rate}}, Cost: float64(rate), Spread: time.Hour, Paths: 4}
}

func text(g *graph.Graph, shares [][]Share) string {
	var words []any
	for _, list := range shares {
		for _, s := range list {
			words = append(words, s.Units, g.Path(s.Walk))
		}
	}
	return fmt.Sprint(words...)
}

func TestSplit(t *testing.T) {
	sub := square(t)
	for name, c := range map[string]struct {
		link Link
		want string
	}{
		"fits one path":       {demand(0, 2, 100), "256 [ab bc]"},
		"needs two":           {demand(0, 2, 128), "200 [ab bc] 56 [ad dc]"},
		"all there is":        {demand(0, 2, 160), "160 [ab bc] 96 [ad dc]"},
		"more than there is":  {demand(0, 2, 161), ""},
		"one path allowed":    {Link{From: 0, To: 2, Need: [2][]int64{{128}, {128}}, Cost: 1, Spread: time.Hour, Paths: 1}, ""},
		"too slow":            {Link{From: 0, To: 2, Need: [2][]int64{{128}, {128}}, Cost: 1, Spread: time.Hour, Bound: 9 * time.Millisecond, Paths: 2}, ""},
		"too different":       {Link{From: 0, To: 2, Need: [2][]int64{{128}, {128}}, Cost: 1, Spread: 7 * time.Millisecond, Paths: 2}, ""},
		"different enough":    {Link{From: 0, To: 2, Need: [2][]int64{{128}, {128}}, Cost: 1, Spread: 8 * time.Millisecond, Paths: 2}, "200 [ab bc] 56 [ad dc]"},
		"one direction":       {Link{From: 0, To: 2, Need: [2][]int64{{128}, {0}}, Cost: 1, Spread: time.Hour, Paths: 2}, "200 [ab bc] 56 [ad dc]"},
		"nothing but a place": {Link{From: 0, To: 2, Need: [2][]int64{{0}, {0}}, Cost: 1, Spread: time.Hour, Paths: 2}, "256 [ab bc]"},
	} {
		shares, ok := Split(sub, []Link{c.link})
		if got := text(sub.Graph, shares); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: got %q, %v", name, got, ok)
		}
	}
}

// Links compete: the shorter way goes to whom it saves most.
func TestSplitShares(t *testing.T) {
	sub := square(t)
	shares, ok := Split(sub, []Link{demand(0, 2, 80), demand(0, 1, 80)})
	if got := text(sub.Graph, shares); !ok || got != "192 [ad dc] 64 [ab bc] 256 [ab]" {
		t.Errorf("got %q, %v", got, ok)
	}
}

// instance draws a small substrate with something left, and links.
func instance(t *rapid.T) (Substrate, []Link) {
	var sub vnet.Substrate
	hosts, switches := rapid.IntRange(2, 4).Draw(t, "hosts"), rapid.IntRange(0, 2).Draw(t, "switches")
	var names []string
	for i := range hosts {
		names = append(names, fmt.Sprintf("h%d", i))
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(names[i])})
	}
	for i := range switches {
		names = append(names, fmt.Sprintf("s%d", i))
		sub.Switches = append(sub.Switches, names[hosts+i])
	}
	for i := range rapid.IntRange(1, 7).Draw(t, "links") {
		a := rapid.IntRange(0, len(names)-1).Draw(t, "a")
		b := rapid.IntRange(0, len(names)-2).Draw(t, "b")
		if b >= a {
			b++
		}
		sub.Links = append(sub.Links, vnet.SubstrateLink{
			Name: fmt.Sprintf("l%d", i), Ends: [2]string{names[a], names[b]},
			Latency: time.Duration(rapid.IntRange(0, 3).Draw(t, "latency")) * time.Millisecond,
		})
	}
	spans := rapid.IntRange(1, 2).Draw(t, "spans")
	left := make([][]int64, 2*len(sub.Links))
	symmetric := rapid.Bool().Draw(t, "symmetric")
	for a := range left {
		for range spans {
			left[a] = append(left[a], rapid.Int64Range(0, 1000).Draw(t, "left"))
		}
		if symmetric && a%2 == 1 {
			left[a] = left[a-1]
		}
	}
	g, err := graph.New(sub)
	if err != nil {
		t.Fatal(err)
	}
	var links []Link
	for range rapid.IntRange(1, 3).Draw(t, "demands") {
		from := rapid.IntRange(0, hosts-1).Draw(t, "from")
		to := (from + rapid.IntRange(1, hosts-1).Draw(t, "to")) % hosts
		l := Link{
			From: from, To: to, Paths: rapid.IntRange(1, 4).Draw(t, "paths"), Cost: float64(rapid.IntRange(1, 1000).Draw(t, "cost")),
			Bound:  time.Duration(rapid.IntRange(0, 8).Draw(t, "bound")) * time.Millisecond,
			Spread: time.Duration(rapid.IntRange(0, 8).Draw(t, "spread")) * time.Millisecond,
		}
		for range spans {
			n := rapid.Int64Range(0, 900).Draw(t, "need")
			l.Need[0] = append(l.Need[0], n)
			if !symmetric {
				n = rapid.Int64Range(0, 900).Draw(t, "back")
			}
			l.Need[1] = append(l.Need[1], n)
		}
		links = append(links, l)
	}
	return Substrate{Graph: g, Left: func(a graph.Arc) []int64 { return left[a] }}, links
}

// The program's optimum is that of a reference that knows all walks and counts in
// fractions, and it is feasible exactly when that is.
func TestCostIsTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sub, links := instance(t)
		got, ok := Cost(sub, links)
		want, feasible := exactOptimum(sub, links)
		if ok != feasible {
			t.Fatalf("feasible: %v, by the reference %v", ok, feasible)
		}
		if !ok {
			return
		}
		exact, _ := want.Float64()
		if math.Abs(got-exact) > 1e-6*max(exact, 1) {
			t.Fatalf("cost %g, of the reference %g", got, exact)
		}
	})
}

// Whatever Split gives fits exactly, keeps every bound, and is the same again.
func TestSplitFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sub, links := instance(t)
		shares, ok := Split(sub, links)
		if again, same := Split(sub, links); same != ok || !reflect.DeepEqual(again, shares) {
			t.Fatal("the same input gave something else")
		}
		if !ok {
			return
		}
		taken := map[rowKey]int64{}
		for l, list := range shares {
			checkShares(t, sub, links[l], list, taken)
		}
		for k, n := range taken {
			if left := sub.Left(k.arc)[k.span]; n > left {
				t.Fatalf("%d are taken of arc %d, which has %d left", n, k.arc, left)
			}
		}
	})
}

// checkShares checks one link's paths and adds up what they take.
func checkShares(t *rapid.T, sub Substrate, l Link, list []Share, taken map[rowKey]int64) {
	units, fastest, slowest := 0, time.Duration(math.MaxInt64), time.Duration(0)
	for _, s := range list {
		if _, err := sub.Graph.Walk(l.From, l.To, sub.Graph.Path(s.Walk)); err != nil || s.Units < 1 {
			t.Fatalf("%d units, %v", s.Units, err)
		}
		units += s.Units
		latency := latencyOf(sub.Graph, s.Walk)
		fastest, slowest = min(fastest, latency), max(slowest, latency)
		for _, a := range s.Walk {
			for dir, need := range l.Need {
				for span, n := range need {
					taken[rowKey{a ^ graph.Arc(dir), span}] += (n*int64(s.Units) + 255) / 256
				}
			}
		}
	}
	if units != vnet.ShareUnits || len(list) > l.Paths {
		t.Fatalf("%d units on %d of %d paths", units, len(list), l.Paths)
	}
	if l.Bound > 0 && slowest > l.Bound || slowest-fastest > l.Spread {
		t.Fatalf("paths take %s to %s", fastest, slowest)
	}
}
