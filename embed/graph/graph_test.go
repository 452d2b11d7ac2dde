package graph

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"sublet/vnet"

	"pgregory.net/rapid"
)

// diamond is two hosts on two switches joined over two others:
//
//	h1 -a- s1 -b- s2 -c- s3 -d- h2      b, c: 1ms each
//	       s1 -e- s4 -f- s3             e, f: 1ms each, e 2ms when slow
//	h1 -g- h3 -h- h2                    5ms each
func diamond(slow time.Duration) vnet.Substrate {
	sub := vnet.Substrate{Switches: []string{"s1", "s2", "s3", "s4"}}
	for _, h := range []vnet.HostID{"h1", "h2", "h3"} {
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: h})
	}
	for _, l := range []struct {
		name, from, to string
		ms             time.Duration
	}{
		{"e", "s1", "s4", slow}, {"f", "s4", "s3", 1}, {"a", "h1", "s1", 1}, {"b", "s2", "s1", 1},
		{"c", "s2", "s3", 1}, {"d", "s3", "h2", 1}, {"g", "h1", "h3", 5}, {"h", "h2", "h3", 5},
	} {
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: l.name, Ends: [2]string{l.from, l.to}, Latency: l.ms * time.Millisecond})
	}
	return sub
}

// TestFabric: latency decides between equal hops, then names; both directions
// use the same path.
func TestFabric(t *testing.T) {
	for slow, want := range map[time.Duration]vnet.Path{1: {"b", "c"}, 2: {"b", "c"}, 0: {"e", "f"}} {
		g, err := New(diamond(slow))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := g.Fabric("s1", "s3"); !ok || !slices.Equal(got, want) {
			t.Errorf("e of %d ms: Fabric = %v, want %v", slow, got, want)
		}
		slices.Reverse(want)
		if got, ok := g.Fabric("s3", "s1"); !ok || !slices.Equal(got, want) {
			t.Errorf("e of %d ms: back, Fabric = %v, want %v", slow, got, want)
		}
		for _, pair := range [][2]string{{"s1", "h1"}, {"h1", "s1"}, {"s1", "s9"}} {
			if got, ok := g.Fabric(pair[0], pair[1]); ok {
				t.Errorf("Fabric of %v = %v", pair, got)
			}
		}
	}
}

// TestReach: fewest hops, unless a bound or the condition on arcs forbids; the
// fabric does not leave its fixed path for either.
func TestReach(t *testing.T) {
	g, err := New(diamond(1))
	if err != nil {
		t.Fatal(err)
	}
	without := func(names ...string) func(Arc) bool {
		return func(a Arc) bool { return !slices.Contains(names, g.links[a.Link()].Name) }
	}
	for _, c := range []struct {
		name  string
		query Query
		want  vnet.Path // nil: none
	}{
		{"over a host", Query{Allow: without()}, vnet.Path{"g", "h"}},
		{"within 4ms", Query{Allow: without(), Bound: 4 * time.Millisecond}, vnet.Path{"a", "b", "c", "d"}},
		{"within 3ms", Query{Allow: without(), Bound: 3 * time.Millisecond}, nil},
		{"around g", Query{Allow: without("g")}, vnet.Path{"a", "b", "c", "d"}},
		{"not around b", Query{Allow: without("g", "b")}, nil},
	} {
		c.query.To = 1
		reach := g.Reach(0, c.query)
		if _, ok := reach.Hops(1); ok != (c.want != nil) || ok && !slices.Equal(g.Path(reach.Walk(1)), c.want) {
			t.Errorf("%s: %v, want %v", c.name, g.Path(reach.Walk(1)), c.want)
		}
	}
}

// TestReachFindsTheFewestHops on random graphs: of all walks there are, none
// that the query admits has fewer hops; and no walk takes a link twice.
func TestReachFindsTheFewestHops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sub := drawSubstrate(t)
		g, err := New(sub)
		if err != nil {
			t.Fatal(err)
		}
		closed := rapid.SliceOfN(rapid.Bool(), 2*len(sub.Links), 2*len(sub.Links)).Draw(t, "closed")
		query := Query{
			To:    -1,
			Allow: func(a Arc) bool { return !closed[a] },
			Bound: time.Duration(rapid.IntRange(0, 12).Draw(t, "bound")) * time.Millisecond,
		}
		reach := g.Reach(0, query)
		found := make([][]Arc, len(sub.Hosts))
		for to := range found {
			found[to] = reach.Walk(to)
		}
		for to := 1; to < len(sub.Hosts); to++ {
			all := g.Walks(0, to, 10000, query)
			if (len(all) > 0) != (len(found[to]) > 0) || len(all) > 0 && len(all[0]) != len(found[to]) {
				t.Fatalf("to %d: %v, of all %v", to, found[to], all)
			}
			if len(all) > 0 && !slices.ContainsFunc(all, func(w []Arc) bool { return reflect.DeepEqual(w, found[to]) }) {
				t.Fatalf("to %d: %v is none of %v", to, found[to], all)
			}
		}
	})
}

// TestFabricIsTheBestOfAll on random graphs: no path through switches precedes
// the fixed one, and every part of a fixed path is one.
func TestFabricIsTheBestOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := New(drawSubstrate(t))
		if err != nil {
			t.Fatal(err)
		}
		for a := g.hosts; a < len(g.names); a++ {
			for b := g.hosts; b < len(g.names); b++ {
				best := g.bestTrail(a, b, trail{}, map[int]bool{a: true})
				got, ok := g.Fabric(g.names[a], g.names[b])
				if ok != (best != nil) {
					t.Fatalf("%s to %s: %v, want %v", g.names[a], g.names[b], got, best)
				}
				if ok && !slices.Equal(g.ranks(got), best.links) {
					t.Fatalf("%s to %s: %v, want %v", g.names[a], g.names[b], got, best.links)
				}
			}
		}
	})
}

// bestTrail tries every path between two switches.
func (g *Graph) bestTrail(at, to int, so trail, visited map[int]bool) *trail {
	if at == to {
		return &so
	}
	var best *trail
	for _, a := range g.leaving[at] {
		next := g.head[a]
		if g.isHost(next) || visited[next] {
			continue
		}
		visited[next] = true
		if t := g.bestTrail(next, to, so.then(g, a), visited); t != nil && (best == nil || t.before(*best)) {
			best = t
		}
		visited[next] = false
	}
	return best
}

// ranks of a path's links, sorted.
func (g *Graph) ranks(path vnet.Path) []int {
	var ranks []int
	for _, name := range path {
		ranks = append(ranks, g.rank[g.byName[name]])
	}
	slices.Sort(ranks)
	return ranks
}

func drawSubstrate(t *rapid.T) vnet.Substrate {
	var sub vnet.Substrate
	var names []string
	for i := range rapid.IntRange(2, 5).Draw(t, "hosts") {
		names = append(names, fmt.Sprintf("h%d", i))
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(names[i])})
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "switches") {
		sub.Switches = append(sub.Switches, fmt.Sprintf("s%d", i))
		names = append(names, sub.Switches[i])
	}
	for i := range rapid.IntRange(1, 12).Draw(t, "links") {
		a := rapid.IntRange(0, len(names)-1).Draw(t, "a")
		b := (a + rapid.IntRange(1, len(names)-1).Draw(t, "b")) % len(names)
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: fmt.Sprintf("w%02d", i*7%13), Ends: [2]string{names[a], names[b]}, Latency: time.Duration(rapid.IntRange(0, 3).Draw(t, "latency")) * time.Millisecond})
	}
	return sub
}

// TestMalformed: loose ends and names used twice are found.
func TestMalformed(t *testing.T) {
	for name, spoil := range map[string]func(*vnet.Substrate){
		"loose end": func(s *vnet.Substrate) { s.Links[0].Ends[1] = "s9" },
		"same link": func(s *vnet.Substrate) { s.Links[0].Name = "f" },
		"same node": func(s *vnet.Substrate) { s.Switches[0] = "h1" },
	} {
		sub := diamond(1)
		spoil(&sub)
		if _, err := New(sub); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
