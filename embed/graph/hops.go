package graph

import "math/bits"

// Ways says to which hosts one substrate link leads that has what a virtual
// link needs: a set of hosts for each host, as bits. For substrates without
// switches.
type Ways struct {
	words int
	sets  []uint64
}

// Open fills in the ways that are open to a need. Prices do not matter.
func (g *Graph) Open(w *Ways, p *Prices) {
	p.Prepare()
	w.words = (g.hosts + 63) / 64
	w.sets = append(w.sets[:0], make([]uint64, w.words*g.hosts)...)
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

func (w *Ways) of(host int) []uint64 { return w.sets[host*w.words : (host+1)*w.words] }

// Hops sets the number of hops from a host to every host, times the price of
// one; Far where no walk leads. It goes breadth first, a word of hosts at a
// time.
func (g *Graph) Hops(from int, w *Ways, price int32, cost []int32, space *[]uint64) {
	for h := range cost {
		cost[h] = Far
	}
	if len(*space) < 3*w.words {
		*space = make([]uint64, 3*w.words)
	}
	front, next, seen := (*space)[:w.words], (*space)[w.words:2*w.words], (*space)[2*w.words:3*w.words]
	clear(front)
	front[from/64] = 1 << (from % 64)
	copy(seen, front)
	cost[from] = 0
	for at := price; w.spread(front, next, seen); at += price {
		enter(next, cost, at)
		front, next = next, front
	}
	g.steps += 8 + g.hosts/8*w.words
}

// Direct is the only arc from a host to another; None if there is none, Many if
// there are several. For substrates that Open is for.
func (g *Graph) Direct(from, to int) Arc {
	if g.direct == nil {
		g.direct = make([]Arc, g.hosts*g.hosts)
		for i := range g.direct {
			g.direct[i] = None
		}
		for h := range g.hosts {
			for _, a := range g.leaving[h] {
				if at := &g.direct[h*g.hosts+g.head[a]]; *at == None {
					*at = a
				} else {
					*at = Many
				}
			}
		}
	}
	return g.direct[from*g.hosts+to]
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

// spread sets next to the hosts behind the front that were not seen; false:
// there is none.
func (w *Ways) spread(front, next, seen []uint64) bool {
	clear(next)
	for i, word := range front {
		for ; word != 0; word &= word - 1 {
			for k, set := range w.of(i*64 + bits.TrailingZeros64(word)) {
				next[k] |= set
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

// back goes from a host towards the first one, in so many hops.
func (s *shortest) back(at, hops int) bool {
	if hops == 0 {
		return at == s.From
	}
	for _, a := range s.graph.leaving[at] {
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
