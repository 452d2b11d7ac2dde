package fabric

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// example is the part of figure 5.10 that the text names (Nakamura, thesis,
// section 5.5.2).
func example(t testing.TB) *Fabric {
	f := NewFabric(18)
	for i, e := range [][2]int{{1, 11}, {2, 11}, {8, 11}, {2, 5}, {5, 8}, {8, 9}, {2, 9}, {9, 17}} {
		if err := f.Join(e[0], e[1], 1, i); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// along is the path over switches.
func along(t testing.TB, f *Fabric, nodes ...int) Path {
	p := Path{Nodes: nodes}
	for i := range nodes[1:] {
		at := slices.IndexFunc(f.Leaving(nodes[i]), func(a Arc) bool { return a.To == nodes[i+1] })
		if at < 0 {
			t.Fatalf("no link from %d to %d", nodes[i], nodes[i+1])
		}
		a := f.Leaving(nodes[i])[at]
		p.Links, p.Cost = append(p.Links, a.Link), p.Cost+a.Cost
	}
	return p
}

func nodesOf(list List) []int {
	var nodes []int
	for _, r := range list {
		nodes = append(nodes, r.Node)
	}
	return nodes
}

func TestShortestOfTheSeedsExample(t *testing.T) {
	var got [][]int
	for _, p := range example(t).Shortest(1, 17, 6) {
		got = append(got, p.Nodes)
	}
	want := [][]int{{1, 11, 2, 9, 17}, {1, 11, 8, 9, 17}, {1, 11, 2, 5, 8, 9, 17}, {1, 11, 8, 5, 2, 9, 17}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPinOfTheSeedsExample(t *testing.T) {
	f := example(t)
	for _, c := range []struct{ path, relays []int }{
		{[]int{1, 11, 2, 9, 17}, []int{2}},
		{[]int{1, 11, 8, 5, 2, 9, 17}, []int{8, 5, 2}},
		{[]int{1, 11, 8, 9, 17}, []int{8}},
	} {
		p := along(t, f, c.path...)
		list := f.Pin(p)
		if got := nodesOf(list); !slices.Equal(got, c.relays) {
			t.Errorf("%v is pinned by %v, want %v", c.path, got, c.relays)
		}
		if err := f.Follow(p, list); err != nil {
			t.Errorf("%v by %v: %v", c.path, list, err)
		}
	}
}

func TestPrefixTreeLists(t *testing.T) {
	path := func(nodes ...int) Path { return Path{Nodes: nodes} }
	for _, c := range []struct {
		paths []Path
		want  [][]int
	}{
		{[]Path{path(1, 11, 2, 9, 17), path(1, 11, 8, 5, 2, 9, 17), path(1, 11, 8, 9, 17), path(1, 4, 7, 17), path(1, 4, 10, 17), path(1, 4, 7, 10, 17)},
			[][]int{{11, 2}, {11, 8, 5}, {11, 8, 9}, {4, 7}, {4, 10}, {4, 7, 10}}},
		{[]Path{path(1, 2, 3, 9), path(1, 4, 3, 2, 9)}, [][]int{{2}, {4}}},
	} {
		for i, list := range PrefixTreeLists(c.paths) {
			if got := nodesOf(list); !slices.Equal(got, c.want[i]) {
				t.Errorf("%v: %v, want %v", c.paths[i].Nodes, got, c.want[i])
			}
		}
	}
}

func TestPrefixTreeListsDoNotPin(t *testing.T) {
	f := example(t)
	p := along(t, f, 1, 11, 8, 5, 2, 9, 17)
	if err := f.Follow(p, List{{11, None}, {8, None}, {5, None}}); err == nil {
		t.Error("11, 8, 5 is said to pin the path although 5 has two equal ways to 17")
	}
}

func TestAdjacencies(t *testing.T) {
	f := NewFabric(3)
	for _, l := range []struct{ a, b, cost, link int }{{0, 1, 9, 0}, {0, 2, 1, 1}, {2, 1, 1, 2}, {0, 2, 1, 3}} {
		if err := f.Join(l.a, l.b, l.cost, l.link); err != nil {
			t.Fatal(err)
		}
	}
	costly := Path{Nodes: []int{0, 1}, Links: []int{0}, Cost: 9}
	parallel := Path{Nodes: []int{0, 2}, Links: []int{3}, Cost: 1}
	for _, p := range []Path{costly, parallel} {
		list := f.Pin(p)
		if want := (List{{p.Nodes[1], p.Links[0]}}); !slices.Equal(list, want) {
			t.Errorf("%v is pinned by %v, want %v", p, list, want)
		}
		if err := f.Follow(p, list); err != nil {
			t.Error(err)
		}
	}
}

func TestBadLinks(t *testing.T) {
	f := NewFabric(2)
	for _, a := range []Arc{{To: 2, Cost: 1}, {To: 0, Cost: 1}, {To: 1, Cost: 0}, {To: 1, Cost: 1 << 16}, {To: -1, Cost: 1}} {
		if f.Add(0, a) == nil {
			t.Errorf("%+v is taken", a)
		}
	}
}

// random is a fabric of some switches and links with small costs, some of them
// parallel, some missing in one direction.
func random(rng *rand.Rand, n int) *Fabric {
	f := NewFabric(n)
	for link := range n + rng.IntN(2*n) {
		a, b := rng.IntN(n), rng.IntN(n)
		if a == b {
			continue
		}
		_ = f.Add(a, Arc{b, 1 + rng.IntN(3), link})
		if rng.IntN(8) > 0 {
			_ = f.Add(b, Arc{a, 1 + rng.IntN(3), link})
		}
	}
	return f
}

// all lists every loopless path, by the order of Shortest: the slow reference.
func all(f *Fabric, from, to int) []Path {
	var paths []Path
	var walk func(p Path)
	walk = func(p Path) {
		at := p.Nodes[len(p.Nodes)-1]
		if at == to {
			paths = append(paths, Path{slices.Clone(p.Nodes), slices.Clone(p.Links), p.Cost})
			return
		}
		for _, a := range f.Leaving(at) {
			if !slices.Contains(p.Nodes, a.To) {
				walk(Path{append(slices.Clip(p.Nodes), a.To), append(slices.Clip(p.Links), a.Link), p.Cost + a.Cost})
			}
		}
	}
	if from != to {
		walk(Path{Nodes: []int{from}})
	}
	slices.SortFunc(paths, Path.compare)
	return paths
}

func TestShortestAgainstEveryPath(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		f := random(rng, 2+rng.IntN(6))
		from, to, k := rng.IntN(f.Len()), rng.IntN(f.Len()), 1+rng.IntN(12)
		got, want := f.Shortest(from, to, k), all(f, from, to)
		if len(got) != min(k, len(want)) {
			t.Fatalf("%d of %d paths, there are %d", len(got), k, len(want))
		}
		seen := make(map[string]bool)
		for i, p := range got {
			if p.Cost != want[i].Cost {
				t.Fatalf("path %d costs %d, there is one of %d", i, p.Cost, want[i].Cost)
			}
			key := fmt.Sprint(p.Nodes, p.Links)
			exists := slices.ContainsFunc(want, func(q Path) bool { return q.compare(p) == 0 })
			if seen[key] || !exists {
				t.Fatalf("path %s: twice %v, exists %v", key, seen[key], exists)
			}
			seen[key] = true
		}
	}
}

func TestPinnedPathsAreFollowedWithTheFewestRelays(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		f := random(rng, 2+rng.IntN(6))
		from, to := rng.IntN(f.Len()), rng.IntN(f.Len())
		for _, p := range f.Shortest(from, to, 6) {
			list := f.Pin(p)
			if err := f.Follow(p, list); err != nil {
				t.Fatalf("%v by %v: %v", p, list, err)
			}
			if fewest := fewestRelays(f, p); len(list) != fewest {
				t.Fatalf("%v by %v: %d relays are enough", p, list, fewest)
			}
		}
	}
}

// fewestRelays tries every list along the path: the slow reference of Pin.
func fewestRelays(f *Fabric, p Path) int {
	best := len(p.Links) + 1
	var try func(at int, list List)
	try = func(at int, list List) {
		if len(list) < best && f.Follow(p, list) == nil {
			best = len(list)
		}
		for next := at + 1; next < len(p.Nodes); next++ {
			try(next, append(slices.Clip(list), Relay{p.Nodes[next], None}))
		}
		if at < len(p.Links) {
			try(at+1, append(slices.Clip(list), Relay{p.Nodes[at+1], p.Links[at]}))
		}
	}
	try(0, nil)
	return best
}

// regular is a random graph as Jellyfish's: n switches with d links each.
func regular(n, d int, seed uint64) *Fabric {
	rng := rand.New(rand.NewPCG(seed, 0))
	f, link := NewFabric(n), 0
	for range d {
		order := rng.Perm(n)
		for i := 0; i+1 < n; i += 2 {
			_ = f.Join(order[i], order[i+1], 1, link)
			link++
		}
	}
	return f
}

// Relay lists of one switch to all 719 others, k = 8: the seed took 7.2 s
// (Nakamura, thesis, section 5.5.3.3), 24 ports of which 4.8 go to hosts.
func BenchmarkAllDestinations(b *testing.B) {
	for _, n := range []int{80, 320, 720, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			base := regular(n, 19, 1)
			for b.Loop() {
				f := base.Without(func(int, Arc) bool { return false })
				relays, lists := 0, 0
				for to := 1; to < n; to++ {
					for _, p := range f.Shortest(0, to, 8) {
						relays += len(f.Pin(p))
						lists++
					}
				}
				b.ReportMetric(float64(relays)/float64(lists), "relays/list")
			}
		})
	}
}
