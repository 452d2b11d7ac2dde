package embed

import (
	"math"

	"sublet/embed/graph"
)

// choice is a host for a node and what the links to placed nodes would cost.
type choice struct {
	host   int
	cost   float64
	excess float64 // of cost, above a hop for each link
}

// list is an empty list of choices that one level of a depth-first search may
// use until it returns; see drop.
func (s *search) list() []choice {
	for s.depth > len(s.lists) {
		s.lists = append(s.lists, make([]choice, 0, len(s.left.sub.Hosts)))
	}
	return s.lists[s.depth-1][:0]
}

// drop gives the last list back.
func (s *search) drop() { s.depth-- }

// unlimited is a bound on costs that bounds nothing.
const unlimited = math.MaxFloat64

// choices lists the hosts that could take a node now, with what its links to
// placed nodes would cost there at the least (see charts), in no order; hosts
// at which everything would cost more than bound may be missing.
func (s *search) choices(v int, bound float64) []choice {
	s.depth++
	list := s.everywhere(s.list(), v)
	spare := bound - s.lowest()
	for _, l := range s.problem.nodes[v].links {
		if u := s.problem.links[l].far(v); s.host[u] >= 0 && len(list) > 0 {
			list = s.price(list, l, u, spare)
		}
	}
	return list
}

// present is choices without a bound, with what links cost beside what is placed
// of the network (see live).
func (s *search) present(v int) []choice {
	s.keen = true
	defer func() { s.keen = false }()
	return s.choices(v, unlimited)
}

// everywhere lists all hosts that have room for a node.
func (s *search) everywhere(list []choice, v int) []choice {
	s.twins.fresh()
	for _, h := range s.shortlists[v] {
		if s.roomy(v, h) && (s.thorough || s.twins.first(h)) {
			charge := s.charge(h)
			list = append(list, choice{h, charge, charge})
		}
	}
	s.weighed += len(s.shortlists[v]) / 4
	return list
}

// lowest is less than everything can cost once the rest is placed: where nodes
// may not share a host, each link without a walk takes a hop at least.
func (s *search) lowest() float64 {
	if !s.problem.apart {
		return s.cost
	}
	return s.cost + s.open*hop
}

// joined is the weight of a node's links to placed nodes.
func (s *search) joined(v int) float64 {
	sum := 0.0
	for _, l := range s.problem.nodes[v].links {
		if s.host[s.problem.links[l].far(v)] >= 0 {
			sum += s.problem.links[l].weight
		}
	}
	return sum
}

// price adds the cost of a link from a placed node to each choice, and drops
// those it cannot reach, and those at which the links so far cost more than
// spare above a hop each.
func (s *search) price(list []choice, l, placed int, spare float64) []choice {
	row, live := s.live(l, placed)
	from, even := s.host[placed], s.even && !live
	weight, base, kept := s.problem.links[l].weight, 0.0, 0
	if s.problem.apart {
		base = weight * hop
	}
	s.weighed += len(list) / 4
	s.need(l, placed)
	for i := range list {
		c := &list[i]
		cost := row[c.host]
		if live {
			if g := s.graph.Only(c.host); g >= 0 && c.host != from {
				cost = row[g] + hop
			}
		}
		more := weight * float64(cost)
		if cost >= graph.Far || c.excess+more-base > spare || c.host == from && !s.carries(l, from) {
			continue
		}
		if cost == hop && even && s.graph.Closed(from, c.host, &s.prices) {
			if more += weight * hop; c.excess+more-base > spare {
				continue // the network's own links fill it
			}
		}
		list[kept] = choice{c.host, c.cost + more, c.excess + more - base}
		kept++
	}
	return list[:kept]
}

// need sets what a link needs outward from one of its ends.
func (s *search) need(l, placed int) {
	v := &s.problem.links[l]
	out := v.outward(placed)
	s.prices.Need = [2][]int64{v.min[out], v.min[out.Opposite()]}
	s.prices.Prepare()
}

// first brings the n-th cheapest choice to the n-th place, if those before
// are in theirs. Among equals it is the one with the most free capacity, from
// the turn on.
func (s *search) first(list []choice, n int) {
	best := n
	for i := n + 1; i < len(list); i++ {
		a, b := &list[i], &list[best]
		if a.cost < b.cost || a.cost == b.cost && s.among(a.host) < s.among(b.host) {
			best = i
		}
	}
	list[n], list[best] = list[best], list[n]
}

// among is where a host comes among equals.
func (s *search) among(host int) int {
	if at := s.rank[host] - s.turn; at >= 0 {
		return at
	}
	return s.rank[host] - s.turn + len(s.rank)
}
