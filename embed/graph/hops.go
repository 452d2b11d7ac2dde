package graph

import (
	"math/bits"
	"slices"
)

// HopGraph is the adjacency of hosts over arcs that have what a virtual link
// needs: for each host the set of its neighbours, as bits. It is for substrates
// without switches.
type HopGraph struct {
	width int
	sets  []uint64
}

// FillHops fills in the arcs that have what is needed. Prices do not matter.
func (g *Graph) FillHops(w *HopGraph, p *Prices) {
	p.Prepare()
	w.width = (g.hosts + 63) / 64
	w.sets = append(w.sets[:0], make([]uint64, w.width*g.hosts)...)
	for h := range g.hosts {
		set := w.of(h)
		for _, a := range g.leaving[h] {
			if p.of(a) >= 0 {
				set[g.head[a]/64] |= 1 << (g.head[a] % 64)
			}
		}
	}
	g.steps += len(g.head) / 4
}

func (w *HopGraph) of(host int) []uint64 { return w.sets[host*w.width : (host+1)*w.width] }

// Hops sets the number of hops from a host to every host, times the price of
// one; Far where no walk leads. It goes breadth first, a word of hosts at a
// time.
func (g *Graph) Hops(from int, w *HopGraph, price int32, cost []int32, space *[]uint64) {
	g.breadth(from, w, price, cost, space, nil)
	g.steps += 8 + g.hosts/8*w.width
}

// InnerHops is Hops for the hosts that others are reached through: it leaves
// those out that only one link joins.
func (g *Graph) InnerHops(from int, w *HopGraph, price int32, cost []int32, space *[]uint64) {
	if g.outer == nil {
		g.outer = make([]uint64, w.width)
		for h, a := range g.stub {
			if a >= 0 {
				g.outer[h/64] |= 1 << (h % 64)
			}
		}
	}
	g.breadth(from, w, price, cost, space, g.outer)
	g.steps += 8 + g.hosts/8
}

// breadth is Hops without some hosts.
func (g *Graph) breadth(from int, w *HopGraph, price int32, cost []int32, space *[]uint64, without []uint64) {
	for h := range cost {
		cost[h] = Far
	}
	if g.every == nil {
		g.every = make([]uint64, w.width)
		for h := range g.hosts {
			g.every[h/64] |= 1 << (h % 64)
		}
	}
	if len(*space) < 3*w.width {
		*space = make([]uint64, 3*w.width)
	}
	front, next, seen := (*space)[:w.width], (*space)[w.width:2*w.width], (*space)[2*w.width:3*w.width]
	clear(front)
	front[from/64] = 1 << (from % 64)
	copy(seen, front)
	for i, set := range without {
		seen[i] |= set
	}
	cost[from] = 0
	for at := price; !slices.Equal(seen, g.every) && w.advance(front, next, seen); at += price {
		enter(next, cost, at)
		front, next = next, front
	}
}

// Close takes the arcs of a walk, in both directions, that lack what is needed
// out of the hop graph, and appends them to a list.
func (g *Graph) Close(w *HopGraph, walk []Arc, p *Prices, shut []Arc) []Arc {
	for _, a := range walk {
		if p.of(a) < 0 && g.closeArc(w, a, p) {
			shut = append(shut, a)
		}
		if p.of(a^1) < 0 && g.closeArc(w, a^1, p) {
			shut = append(shut, a^1)
		}
	}
	return shut
}

// closeArc takes a full arc out, if no parallel arc has what is needed.
func (g *Graph) closeArc(w *HopGraph, a Arc, p *Prices) bool {
	from, to := g.head[a^1], g.head[a]
	if w.of(from)[to/64]&(1<<(to%64)) == 0 {
		return false
	}
	if g.Direct(from, to) == Many && slices.ContainsFunc(g.leaving[from], func(b Arc) bool { return g.head[b] == to && p.of(b) >= 0 }) {
		return false
	}
	w.of(from)[to/64] &^= 1 << (to % 64)
	return true
}

// Reopen undoes Close.
func (g *Graph) Reopen(w *HopGraph, a Arc) {
	to := g.head[a]
	w.of(g.head[a^1])[to/64] |= 1 << (to % 64)
}

// Direct is the only arc from a host to another; None if there is none, Many if
// there are several. For substrates that FillHops is for.
func (g *Graph) Direct(from, to int) Arc {
	if g.direct == nil {
		g.direct = make([]int32, g.hosts*g.hosts)
		for i := range g.direct {
			g.direct[i] = int32(None)
		}
		for h := range g.hosts {
			for _, a := range g.leaving[h] {
				if at := &g.direct[h*g.hosts+g.head[a]]; *at == int32(None) {
					*at = int32(a)
				} else {
					*at = int32(Many)
				}
			}
		}
	}
	return Arc(g.direct[from*g.hosts+to])
}

// No single arc.
const (
	None Arc = -1
	Many Arc = -2
)

// Closed says whether the only arc from a host to another has not what is
// needed now.
func (g *Graph) Closed(from, to int, p *Prices) bool {
	a := g.Direct(from, to)
	return a >= 0 && p.of(a) < 0
}

// Far is the cost of what a walk does not lead to.
const Far = 1 << 30

// advance sets next to the hosts behind the front that were not seen; false:
// there is none.
func (w *HopGraph) advance(front, next, seen []uint64) bool {
	clear(next)
	for i, word := range front {
		for ; word != 0; word &= word - 1 {
			set := w.of(i*64 + bits.TrailingZeros64(word))
			if len(set) == 2 && len(next) == 2 {
				next[0] |= set[0]
				next[1] |= set[1]
				continue
			}
			for k, word := range set {
				next[k] |= word
			}
		}
	}
	any := uint64(0)
	for k := range next {
		next[k] &^= seen[k]
		seen[k] |= next[k]
		any |= next[k]
	}
	return any != 0
}

// enter sets the cost of a set of hosts.
func enter(set []uint64, cost []int32, at int32) {
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			cost[i*64+bits.TrailingZeros64(word)] = at
		}
	}
}

// Detour asks for a walk between two hosts.
type Detour struct {
	From, To int
	Cost     []int32 // of Hops, from From with the same need where nothing more is taken
	Price    int32   // of a hop, in Cost
	Most     int     // hops
}

// Shortest finds a walk with the fewest hops over what is left now, appended to
// walk: the costs tell how far it is at the least, and walks of that length
// are looked for, then longer ones (iterative deepening A*, Korf 1985). None:
// there is no walk of so many hops; Known is false if the effort was bounded
// before that was known.
func (g *Graph) Shortest(d Detour, p *Prices, walk []Arc) (found []Arc, known bool) {
	p.Prepare()
	s := shortest{graph: g, Detour: d, prices: p, steps: mostDescent}
	defer func() { g.steps += 4 + (mostDescent-max(s.steps, 0))/2 }()
	for hops := int(d.Cost[d.To] / d.Price); hops <= d.Most; hops++ {
		begun := len(walk)
		walk = append(walk, make([]Arc, hops)...)
		s.walk = walk[begun:]
		if s.back(d.To, hops) {
			return walk, true
		}
		walk = walk[:begun]
		if s.steps < 0 {
			return nil, false
		}
	}
	return nil, true
}

// mostDescent bounds the arcs that one Shortest looks at.
const mostDescent = 300

type shortest struct {
	Detour
	graph  *Graph
	prices *Prices
	walk   []Arc
	steps  int
}

// back goes from a host towards the first one, in so many hops. A host with one
// link is on the way to nothing else.
func (s *shortest) back(at, hops int) bool {
	if hops <= 1 {
		return hops == 0 && at == s.From || hops == 1 && s.last(at)
	}
	for _, a := range s.graph.onward[at] {
		if s.steps--; s.steps < 0 {
			return false
		}
		next := s.graph.head[a]
		if int(s.Cost[next]) > (hops-1)*int(s.Price) || s.prices.of(a^1) < 0 {
			continue
		}
		s.walk[hops-1] = a ^ 1
		if s.back(next, hops-1) {
			return true
		}
	}
	return false
}

// last goes the last hop to the first host.
func (s *shortest) last(at int) bool {
	s.steps--
	a := s.graph.Direct(s.From, at)
	if a == Many {
		for _, b := range s.graph.leaving[s.From] {
			if s.graph.head[b] == at && s.prices.of(b) >= 0 {
				a = b
				break
			}
		}
	}
	if a < 0 || s.prices.of(a) < 0 {
		return false
	}
	s.walk[0] = a
	return true
}
