package graph

import (
	"math"
	"slices"
	"time"

	"sublet/vnet"
)

// Fares is what a search for the cheapest walk pays.
type Fares struct {
	Price func(Arc) float64 // of an arc, at least 0; math.Inf(1): it may not be taken
	Bound time.Duration     // on the walk's latency; 0: none
}

// mostFares bounds the labels of one search under a bound on latency, where
// walks that are dearer and faster are kept too.
const mostFares = 20_000

// Cheapest finds the walk of least price from one host to another, no dearer
// than limit; false: there is none. It sets labels in order of price (Dijkstra);
// under a bound on latency it keeps, for a place, walks of which none is both
// dearer and slower than another (Hansen's bicriterion labels), mostFares of
// them. No walk takes a link twice, or more relays than a list holds.
func (g *Graph) Cheapest(from, to int, limit float64, f Fares) ([]Arc, float64, bool) {
	c := g.cheapest(f, limit)
	c.labels = append(c.labels, fare{label: label{state: int32(from), before: -1, arc: -1}})
	c.push(0)
	for len(c.open) > 0 && len(c.labels) < mostFares {
		i := c.pop()
		l := c.labels[i]
		if int(l.state) == to {
			if walk := c.walkTo(i); g.Pinned(walk) {
				return walk, l.price, true
			}
			walk, price, ok := g.leastPinned(from, to, vnet.MaxRelays, f)
			return walk, price, ok && price <= limit
		}
		if c.settled(l) {
			continue
		}
		c.expand(i)
	}
	return nil, 0, false
}

// fare is a label with the price of its walk.
type fare struct {
	label
	price float64
}

// cheapest is a search under way, and working space that the graph keeps.
type cheapest struct {
	graph   *Graph
	fares   Fares
	limit   float64
	labels  []fare
	open    []int32 // a heap
	epoch   int
	dense   []mark       // by state: the least latency of a walk settled there
	fastest map[int]mark // the same, where there are many states
}

// denseStates bounds the states for which a list is kept.
const denseStates = 1 << 18

// cheapest makes the working space, or takes it from the last search.
func (g *Graph) cheapest(f Fares, limit float64) *cheapest {
	c := g.fares
	if c == nil {
		c = &cheapest{graph: g, fastest: map[int]mark{}}
		if n := g.hosts + len(g.trees)*len(g.trees); n <= denseStates {
			c.dense = make([]mark, n)
		}
		g.fares = c
	}
	clear(c.fastest)
	c.fares, c.limit, c.labels, c.open, c.epoch = f, limit, c.labels[:0], c.open[:0], c.epoch+1
	return c
}

// known is the least latency of a walk settled at a state; false: none is.
func (c *cheapest) known(state int) (time.Duration, bool) {
	var m mark
	if c.dense != nil {
		m = c.dense[state]
	} else {
		m = c.fastest[state]
	}
	return m.latency, m.epoch == c.epoch
}

// settled says whether a walk settled before is as fast, and notes this one if
// not: it is at least as dear.
func (c *cheapest) settled(l fare) bool {
	if known, ok := c.known(int(l.state)); ok && (c.fares.Bound == 0 || known <= l.latency) {
		return true
	}
	if c.dense != nil {
		c.dense[l.state] = mark{c.epoch, l.latency}
	} else {
		c.fastest[int(l.state)] = mark{c.epoch, l.latency}
	}
	return false
}

// expand walks on from a label.
func (c *cheapest) expand(i int32) {
	for a, state := range c.graph.onwards(int(c.labels[i].state)) {
		c.step(i, a, state)
	}
}

// step adds the label behind an arc, if it may be taken.
func (c *cheapest) step(before int32, a Arc, state int) {
	c.graph.steps++
	was := c.labels[before]
	next := fare{label: label{state: int32(state), before: before, arc: a, hops: was.hops + 1, latency: was.latency + c.graph.Latency(a)}}
	if known, ok := c.known(state); ok && (c.fares.Bound == 0 || known <= next.latency) {
		return
	}
	next.price = was.price + c.fares.Price(a)
	if next.price > c.limit || math.IsInf(next.price, 1) || c.fares.Bound > 0 && next.latency > c.fares.Bound || c.takes(before, a) {
		return
	}
	c.labels = append(c.labels, next)
	c.push(int32(len(c.labels) - 1))
}

// takes says whether the walk of a label takes an arc's link already. Only
// where a walk passes a fabric can it come back to a link it took.
func (c *cheapest) takes(i int32, a Arc) bool {
	if len(c.graph.trees) == 0 {
		return false
	}
	for ; i > 0; i = c.labels[i].before {
		if c.labels[i].arc.Link() == a.Link() {
			return true
		}
	}
	return false
}

func (c *cheapest) walkTo(i int32) []Arc {
	var walk []Arc
	for ; i > 0; i = c.labels[i].before {
		walk = append(walk, c.labels[i].arc)
	}
	slices.Reverse(walk)
	return walk
}

// before orders by price, then latency, then age, so that equal searches find
// equal walks.
func (c *cheapest) before(i, j int32) bool {
	a, b := &c.labels[i], &c.labels[j]
	if a.price != b.price {
		return a.price < b.price
	}
	if a.latency != b.latency {
		return a.latency < b.latency
	}
	return i < j
}

func (c *cheapest) push(label int32) {
	c.open = append(c.open, label)
	i := len(c.open) - 1
	for i > 0 && c.before(label, c.open[(i-1)/2]) {
		c.open[i] = c.open[(i-1)/2]
		i = (i - 1) / 2
	}
	c.open[i] = label
}

func (c *cheapest) pop() int32 {
	first, last := c.open[0], c.open[len(c.open)-1]
	c.open = c.open[:len(c.open)-1]
	n := len(c.open)
	if n == 0 {
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && c.before(c.open[child+1], c.open[child]) {
			child++
		}
		if !c.before(c.open[child], last) {
			break
		}
		c.open[i] = c.open[child]
		i = child
	}
	c.open[i] = last
	return first
}
