package embed

import (
	"math"
	"slices"

	"sublet/embed/graph"
)

// branch puts nodes back in the way that costs least: depth first, always the
// node with the fewest hosts that may still lead below the best so far (branch
// and bound with forward checking). What is open costs at least a hop for each
// link and, for each node, what its links to placed nodes cost above that at
// the host where they cost least.
type branch struct {
	bound   float64 // on the cost of what is still looked for
	trials  int     // placements still to be tried
	best    outcome
	found   bool
	stages  []stage // by depth
	stack   []spot  // of all lists in use
	presses bool    // links make way for others: dear, so only where all else was tried
	moved   []moved // links of placed nodes that made way, with their former walks
}

// stage is what is known of the nodes that are out, at a depth, by node.
type stage struct {
	spots [][]spot // hosts that may lead below the bound
	least []spot   // the one of the smallest cost
}

// spot is a host with what it costs itself, and what a node's links to placed
// nodes cost there above a hop each, at the least.
type spot struct {
	host int
	cost float64
}

// recruit finds the cheapest way to put the nodes of a set back, if one costs
// at most bound; false: none was found, and the set is out.
func (s *search) recruit(set []int, bound float64, trials int) bool {
	b := &s.branching
	b.bound, b.trials, b.found, b.stack = bound, trials, false, b.stack[:0]
	b.moved = b.moved[:0]
	top := s.stage(0)
	for _, v := range set {
		top.spots[v] = s.spots(v)
		top.least[v] = s.cheapest(v, top.spots[v])
	}
	s.down(set, 0)
	s.bound = unlimited
	if b.found {
		s.restore(b.best)
	}
	return b.found
}

// stage is the working space of a depth.
func (s *search) stage(depth int) *stage {
	b := &s.branching
	for depth >= len(b.stages) || len(b.stages[depth].least) < len(s.host) {
		if depth < len(b.stages) {
			b.stages = nil
		}
		b.stages = append(b.stages, stage{make([][]spot, len(s.host)), make([]spot, len(s.host))})
	}
	return &b.stages[depth]
}

// spots lists all hosts that have room for a node.
func (s *search) spots(v int) []spot {
	b := &s.branching
	from := len(b.stack)
	for _, h := range s.shortlists[v] {
		if s.roomy(v, h) {
			b.stack = append(b.stack, spot{h, s.fee(h)})
		}
	}
	list := b.stack[from:len(b.stack):len(b.stack)]
	for _, l := range s.problem.nodes[v].links {
		if u := s.problem.links[l].far(v); s.host[u] >= 0 {
			list, _ = s.dearer(list[:0], list, l, u, v, unlimited)
		}
	}
	b.stack = b.stack[:from+len(list)]
	return list
}

// fee is what a host costs a node there at the least: nothing, where another
// may have paid for it.
func (s *search) fee(host int) float64 {
	if !s.problem.apart {
		return 0
	}
	return s.charge(host)
}

// dearer appends to a list the spots of another, with what a link to a placed
// node costs added, that are free and cost at most so much then; and says
// which is the cheapest.
func (s *search) dearer(to, spots []spot, l, placed, v int, most float64) ([]spot, spot) {
	row, from := s.row(l, placed), s.host[placed]
	weight, base, best := s.problem.links[l].weight, int32(0), spot{-1, math.Inf(1)}
	if s.problem.apart {
		base = hop
	}
	s.need(l, placed)
	even, apart := s.even, s.problem.apart
	for _, at := range spots {
		cost := row[at.host]
		if cost >= graph.Far {
			continue
		}
		more := at.cost + weight*float64(cost-base)
		if more > most || apart && s.nodesAt[at.host] > 0 || !apart && !s.roomy(v, at.host) {
			continue
		}
		if cost == hop && even && s.graph.Closed(from, at.host, &s.prices) {
			if more += weight * hop; more > most {
				continue // the network's own links fill it
			}
		}
		at.cost = more
		if to = append(to, at); more < best.cost {
			best = at
		}
	}
	s.weighed += len(spots) / 3
	return to, best
}

// cheapest is the spot of the smallest cost that is free.
func (s *search) cheapest(v int, spots []spot) spot {
	best := spot{-1, math.Inf(1)}
	for _, at := range spots {
		if at.cost < best.cost && s.roomy(v, at.host) {
			best = at
		}
	}
	return best
}

// down places the nodes that are out, and keeps what costs least.
func (s *search) down(out []int, depth int) {
	b := &s.branching
	if len(out) == 0 {
		if s.cost <= b.bound {
			b.best, b.found, b.bound = s.outcome(), true, s.cost*(1-1e-6)
		}
		return
	}
	at := s.stage(depth)
	k, rest := 0, s.lowest()
	for i, v := range out {
		if n, fewest := len(at.spots[v]), len(at.spots[out[k]]); n < fewest || n == fewest && s.problem.nodes[v].traffic > s.problem.nodes[out[k]].traffic {
			k = i
		}
		rest += at.least[v].cost
	}
	out[0], out[k] = out[k], out[0]
	v := out[0]
	rest -= at.least[v].cost
	list := s.promising(at.spots[v], v, rest)
	defer s.drop()
	for n := range list {
		s.first(list, n)
		c := list[n]
		if rest+c.cost > b.bound || b.trials <= 0 || s.spent() > s.patience {
			return
		}
		b.trials--
		mark := len(b.stack)
		if rest, ok := s.look(out, depth, c); ok {
			s.bound = b.bound - rest
			if moved := len(b.moved); s.press(v, c.host) {
				s.down(out[1:], depth+1)
				s.relent(v, moved)
			}
		}
		b.stack = b.stack[:mark]
	}
}

// promising lists the hosts that a node may go to.
func (s *search) promising(spots []spot, v int, rest float64) []choice {
	s.depth++
	list := s.list()
	s.twins.fresh()
	for _, at := range spots {
		if rest+at.cost <= s.branching.bound && s.roomy(v, at.host) && s.twins.first(at.host) {
			list = append(list, choice{host: at.host, cost: at.cost})
		}
	}
	s.weighed += len(spots) / 8
	return list
}

// look fills the next stage in as if the first node that is out were on a
// host: what the others cost there above a hop for each link; false: too much.
func (s *search) look(out []int, depth int, c choice) (float64, bool) {
	b, v, fee := &s.branching, out[0], s.fee(c.host)
	s.occupy(v, c.host)
	defer s.vacate(v)
	s.stage(depth + 1)
	at, next := s.stage(depth), s.stage(depth+1)
	here := s.lowest() - fee + c.cost
	sum := here
	for _, u := range out[1:] {
		next.spots[u], next.least[u] = at.spots[u], at.least[u]
		if at.least[u].host == c.host {
			next.least[u] = s.cheapest(u, at.spots[u])
			s.weighed += len(at.spots[u]) / 8
		}
		sum += next.least[u].cost
	}
	for _, l := range s.problem.nodes[v].links {
		u := s.problem.links[l].far(v)
		if s.host[u] >= 0 {
			continue
		}
		from, n := len(b.stack), len(next.spots[u])
		b.stack = slices.Grow(b.stack, n)
		list, now := s.dearer(b.stack[from:from:from+n], next.spots[u], l, v, u, b.bound-sum+next.least[u].cost)
		b.stack = b.stack[:from+len(list)]
		if sum += now.cost - next.least[u].cost; sum > b.bound {
			return 0, false
		}
		next.spots[u], next.least[u] = list, now
	}
	return sum - here, true
}
