package graph

import (
	"container/heap"
	"math"
	"slices"
	"time"

	"sublet/fabric"
	"sublet/vnet"
)

// Where switches are relays, a walk goes as its senders say: each segment of
// it between two hosts has a list of relays, of vnet.MaxRelays at most, which
// holds if every leg, from one relay to the next, is the only shortest path
// that the fabric has (fabric). Walks that take more are not to be had.
// A list must hold on the whole fabric, what is down included.

// pins is the fabric by which lists must hold.
type pins struct {
	fabric *fabric.Fabric
	number []int // by node: of the switch in the fabric; -1: a host, or unknown there
	link   []int // by link: its index in the fabric; -1
}

// Within says of what substrate the graph is a part: lists must hold there.
func (g *Graph) Within(whole vnet.Substrate) { g.whole, g.pinning = whole, nil }

// pins are made when a walk is first long enough for them to matter.
func (g *Graph) pins() *pins {
	if g.pinning != nil {
		return g.pinning
	}
	p := &pins{fabric: fabric.FabricOf(g.whole), number: make([]int, len(g.names)), link: make([]int, len(g.links))}
	switches, links := make(map[string]int), make(map[string]int)
	for i, name := range g.whole.Switches {
		switches[name] = i + 1
	}
	for i, l := range g.whole.Links {
		links[l.Name] = i + 1
	}
	for i, name := range g.names {
		p.number[i] = switches[name] - 1
	}
	for i, l := range g.links {
		p.link[i] = links[l.Name] - 1
	}
	g.pinning = p
	return p
}

// Pinned says whether relay lists can hold a walk between two hosts, or are
// not needed: without relays a walk is the fabric's own.
func (g *Graph) Pinned(walk []Arc) bool {
	if len(g.whole.Relays) == 0 || len(walk) <= vnet.MaxRelays+3 {
		return true // one leg for each link inside, and one to and from the hosts
	}
	for first := 0; first < len(walk); {
		last := first
		for g.head[walk[last]] >= g.named && last+1 < len(walk) {
			last++
		}
		if !g.pinned(walk[first : last+1]) {
			return false
		}
		first = last + 1
	}
	return true
}

// pinned is Pinned of a segment.
func (g *Graph) pinned(segment []Arc) bool {
	if len(segment) <= vnet.MaxRelays+3 {
		return true
	}
	p := g.pins()
	path := fabric.Path{Nodes: []int{p.number[g.head[segment[0]]]}}
	for _, a := range segment[1 : len(segment)-1] {
		path.Nodes, path.Links = append(path.Nodes, p.number[g.head[a]]), append(path.Links, p.link[a.Link()])
	}
	if slices.Contains(path.Nodes, -1) || slices.Contains(path.Links, -1) {
		return false
	}
	return len(p.fabric.Pin(path)) <= vnet.MaxRelays
}

// ReachPinned is the shortest walk to a query's host that lists can hold or,
// under a bound on latency, the fastest.
func (g *Graph) ReachPinned(from int, q Query) ([]Arc, bool) {
	walk, _, ok := g.leastPinned(from, q.To, vnet.MaxRelays, Fares{Bound: q.Bound, Price: func(a Arc) float64 {
		switch {
		case !q.Allow(a):
			return math.Inf(1)
		case q.Bound > 0:
			return float64(g.Latency(a)) + 1 // of as fast ones the shortest
		}
		return 1
	}})
	return walk, ok
}

// leastPinned finds the walk of least price whose segments take at most so
// many relays each, by Dijkstra's algorithm over switches and the legs that
// led to them since the last host. One within the bound on latency may be
// missed where a cheaper one is not; so may one that passes a host, where a
// cheaper one passes a switch before and after it.
func (g *Graph) leastPinned(from, to, relays int, f Fares) ([]Arc, float64, bool) {
	if len(g.whole.Relays) == 0 {
		return nil, 0, false
	}
	s := legs{graph: g, pins: g.pins(), fares: f, most: relays + 1, least: make([]int, len(g.names))}
	for i := range s.least {
		s.least[i] = s.most + 1
	}
	for s.add(leg{node: from, before: -1}); s.Len() > 0; {
		i := heap.Pop(&s).(int)
		l := s.labels[i]
		if l.legs >= s.least[l.node] {
			continue // a cheaper walk came here by no more legs
		}
		s.least[l.node] = l.legs
		if l.node == to {
			walk := s.walk(i)
			return walk, l.price, g.simple(from, walk) && (f.Bound == 0 || g.latency(walk) <= f.Bound)
		}
		s.expand(i)
	}
	return nil, 0, false
}

// legs is a search under way.
type legs struct {
	graph  *Graph
	pins   *pins
	fares  Fares
	most   int   // legs of a segment
	least  []int // by node: legs of a walk settled there
	labels []leg
	open   []int // a heap of labels, by price
}

// leg is a walk's last arc, and the label before.
type leg struct {
	price        float64
	node, before int
	legs         int // since the last host, that of the arc included
	arc          Arc
}

func (s *legs) Len() int           { return len(s.open) }
func (s *legs) Swap(i, j int)      { s.open[i], s.open[j] = s.open[j], s.open[i] }
func (s *legs) Push(x any)         { s.open = append(s.open, x.(int)) }
func (s *legs) Less(i, j int) bool { return s.before(s.open[i], s.open[j]) }

// before orders labels by price; of equal ones by fewer legs, then by age.
func (s *legs) before(i, j int) bool {
	a, b := &s.labels[i], &s.labels[j]
	if a.price != b.price {
		return a.price < b.price
	}
	return a.legs < b.legs || a.legs == b.legs && i < j
}

func (s *legs) Pop() any {
	last := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	return last
}

// add makes a label, and tells its number.
func (s *legs) add(l leg) int {
	s.labels = append(s.labels, l)
	heap.Push(s, len(s.labels)-1)
	return len(s.labels) - 1
}

// step goes over an arc; false: it may not be taken.
func (s *legs) step(from int, a Arc, legs int) (int, bool) {
	s.graph.steps++
	price := s.fares.Price(a)
	if math.IsInf(price, 1) {
		return 0, false
	}
	return s.add(leg{s.labels[from].price + price, s.graph.head[a], from, legs, a}), true
}

// expand goes on from a host by any link, from a switch to hosts, and by one
// more leg to switches.
func (s *legs) expand(i int) {
	g, at := s.graph, s.labels[i].node
	for _, a := range g.leaving[at] {
		if at < g.named || g.head[a] < g.named {
			s.step(i, a, 0)
		}
	}
	if at >= g.named && s.labels[i].legs < s.most && s.pins.number[at] >= 0 {
		s.grow(i, i, 0)
	}
}

// grow follows the only shortest paths from the switch of label start on.
func (s *legs) grow(start, i, cost int) {
	g, p := s.graph, s.pins
	for _, a := range g.leaving[s.labels[i].node] {
		to := p.number[g.head[a]]
		if to < 0 {
			continue
		}
		least, only := p.fabric.Only(p.number[s.labels[start].node], to)
		if !only || least != cost+1 {
			continue
		}
		if next, ok := s.step(i, a, s.labels[start].legs+1); ok {
			s.grow(start, next, cost+1)
		}
	}
}

// walk of a label.
func (s *legs) walk(i int) []Arc {
	var walk []Arc
	for ; s.labels[i].before >= 0; i = s.labels[i].before {
		walk = append(walk, s.labels[i].arc)
	}
	slices.Reverse(walk)
	return walk
}

// latency of a walk.
func (g *Graph) latency(walk []Arc) (sum time.Duration) {
	for _, a := range walk {
		sum += g.Latency(a)
	}
	return sum
}

// simple says whether a walk passes no node twice.
func (g *Graph) simple(from int, walk []Arc) bool {
	passed := map[int]bool{from: true}
	for _, a := range walk {
		if passed[g.head[a]] {
			return false
		}
		passed[g.head[a]] = true
	}
	return true
}
