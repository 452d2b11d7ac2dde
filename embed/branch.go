package embed

import (
	"math"
	"slices"

	"sublet/embed/graph"
)

// branchAndBound reinserts nodes at the least cost: depth first, always the node
// with the fewest hosts that may still lead below the best cost so far (branch
// and bound with forward checking). The lower bound is one hop for each link
// that is not routed and, for each node, the least excess of its links to placed
// nodes over any host.
type branchAndBound struct {
	bound      float64 // on the cost of a further solution
	placements int     // placements still to be tried
	best       outcome
	found      bool
	levels     []level      // by depth
	stack      []pricedHost // memory of all lists in use
	makesRoom  bool         // links may displace others; expensive, so only after all else was tried
	displaced  []removal    // links of placed nodes that were displaced, with their former walks
}

// level is what is known at a depth of the search, by node that is not placed.
type level struct {
	candidates [][]pricedHost // hosts that may lead below the bound
	cheapest   []pricedHost   // the candidate of least cost
}

// pricedHost is a host with a lower bound on its cost for a node: its own cost and
// the excess of the node's links to placed nodes above one hop each.
type pricedHost struct {
	host int
	cost float64
}

// reinsert places the nodes of a set at the least total cost, if that is at most
// bound. False: no solution was found, and the set is not placed.
func (s *search) reinsert(set []int, bound float64, trials int) bool {
	b := &s.branch
	b.bound, b.placements, b.found, b.stack = bound, trials, false, b.stack[:0]
	b.displaced = b.displaced[:0]
	top := s.level(0)
	for _, v := range set {
		top.candidates[v] = s.pricedHosts(v)
		top.cheapest[v] = s.cheapest(v, top.candidates[v])
	}
	s.descend(set, 0)
	s.costBound = unlimited
	if b.found {
		s.restore(b.best)
	}
	return b.found
}

// level is the working space of a depth.
func (s *search) level(depth int) *level {
	b := &s.branch
	for depth >= len(b.levels) || len(b.levels[depth].cheapest) < len(s.host) {
		if depth < len(b.levels) {
			b.levels = nil
		}
		b.levels = append(b.levels, level{make([][]pricedHost, len(s.host)), make([]pricedHost, len(s.host))})
	}
	return &b.levels[depth]
}

// pricedHosts lists all hosts that a node fits on.
func (s *search) pricedHosts(v int) []pricedHost {
	b := &s.branch
	from := len(b.stack)
	for _, h := range s.shortlists[v] {
		if s.fits(v, h) {
			b.stack = append(b.stack, pricedHost{h, s.minHostCost(h)})
		}
	}
	list := b.stack[from:len(b.stack):len(b.stack)]
	for _, l := range s.problem.nodes[v].links {
		if u := s.problem.links[l].far(v); s.host[u] >= 0 {
			list, _ = s.withLinkCost(list[:0], list, l, u, v, unlimited)
		}
	}
	b.stack = b.stack[:from+len(list)]
	return list
}

// minHostCost is a lower bound on a host's own cost: 0 where another node of the
// network may be on it.
func (s *search) minHostCost(host int) float64 {
	if !s.problem.apart {
		return 0
	}
	return s.hostCost(host)
}

// withLinkCost adds the cost of a link to a placed node to priced hosts. Those that
// are free and cost at most so much then it appends to a list. It returns the
// list and the cheapest of them.
func (s *search) withLinkCost(to, hosts []pricedHost, l, placed, v int, most float64) ([]pricedHost, pricedHost) {
	row, from := s.row(l, placed), s.host[placed]
	weight, base, best := s.problem.links[l].weight, int32(0), pricedHost{-1, math.Inf(1)}
	if s.problem.apart {
		base = hop
	}
	s.need(l, placed)
	even, apart := s.uniform, s.problem.apart
	for _, at := range hosts {
		cost := row[at.host]
		if cost >= graph.Far {
			continue
		}
		more := at.cost + weight*float64(cost-base)
		if more > most || apart && s.nodesAt[at.host] > 0 || !apart && !s.fits(v, at.host) {
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
	s.otherWork += len(hosts) / 3
	return to, best
}

// cheapest is the free host of the least cost.
func (s *search) cheapest(v int, hosts []pricedHost) pricedHost {
	best := pricedHost{-1, math.Inf(1)}
	for _, at := range hosts {
		if at.cost < best.cost && s.fits(v, at.host) {
			best = at
		}
	}
	return best
}

// descend places the remaining nodes, and keeps the solution of least cost.
func (s *search) descend(out []int, depth int) {
	b := &s.branch
	if len(out) == 0 {
		if s.cost <= b.bound {
			b.best, b.found, b.bound = s.outcome(), true, s.cost*(1-1e-6)
		}
		return
	}
	at := s.level(depth)
	k, rest := 0, s.lowest()
	for i, v := range out {
		if n, fewest := len(at.candidates[v]), len(at.candidates[out[k]]); n < fewest || n == fewest && s.problem.nodes[v].traffic > s.problem.nodes[out[k]].traffic {
			k = i
		}
		rest += at.cheapest[v].cost
	}
	out[0], out[k] = out[k], out[0]
	v := out[0]
	rest -= at.cheapest[v].cost
	list := s.promising(at.candidates[v], v, rest)
	defer s.dropList()
	for n := range list {
		s.selectCheapest(list, n)
		c := list[n]
		if rest+c.cost > b.bound || b.placements <= 0 || s.spent() > s.workLimit {
			return
		}
		b.placements--
		mark := len(b.stack)
		if rest, ok := s.lookAhead(out, depth, c); ok {
			s.costBound = b.bound - rest
			if moved := len(b.displaced); s.makeRoom(v, c.host) {
				s.descend(out[1:], depth+1)
				s.undo(v, moved)
			}
		}
		b.stack = b.stack[:mark]
	}
}

// promising lists the hosts at which a node may still lead below the bound.
func (s *search) promising(hosts []pricedHost, v int, rest float64) []choice {
	s.listsInUse++
	list := s.newList()
	s.equivalent.nextRound()
	for _, at := range hosts {
		if rest+at.cost <= s.branch.bound && s.fits(v, at.host) && s.equivalent.firstOfGroup(at.host) {
			list = append(list, choice{host: at.host, cost: at.cost})
		}
	}
	s.otherWork += len(hosts) / 8
	return list
}

// lookAhead fills in the next level as if the first node that is not placed were
// on a host: the excess cost of the others. False: that is above the bound.
func (s *search) lookAhead(out []int, depth int, c choice) (float64, bool) {
	b, v, fee := &s.branch, out[0], s.minHostCost(c.host)
	s.occupy(v, c.host)
	defer s.vacate(v)
	s.level(depth + 1)
	at, next := s.level(depth), s.level(depth+1)
	here := s.lowest() - fee + c.cost
	sum := here
	for _, u := range out[1:] {
		next.candidates[u], next.cheapest[u] = at.candidates[u], at.cheapest[u]
		if at.cheapest[u].host == c.host {
			next.cheapest[u] = s.cheapest(u, at.candidates[u])
			s.otherWork += len(at.candidates[u]) / 8
		}
		sum += next.cheapest[u].cost
	}
	for _, l := range s.problem.nodes[v].links {
		u := s.problem.links[l].far(v)
		if s.host[u] >= 0 {
			continue
		}
		from, n := len(b.stack), len(next.candidates[u])
		b.stack = slices.Grow(b.stack, n)
		list, now := s.withLinkCost(b.stack[from:from:from+n], next.candidates[u], l, v, u, b.bound-sum+next.cheapest[u].cost)
		b.stack = b.stack[:from+len(list)]
		if sum += now.cost - next.cheapest[u].cost; sum > b.bound {
			return 0, false
		}
		next.candidates[u], next.cheapest[u] = list, now
	}
	return sum - here, true
}
