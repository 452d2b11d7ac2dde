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
// placed nodes would cost there, in no order; hosts at which everything would
// cost more than bound may be missing. The walks found stay at hand for settle.
func (s *search) choices(v int, bound float64) []choice {
	s.depth++
	if !s.problem.apart || !s.graph.Flat() || bound < unlimited {
		return s.within(v, bound, math.MaxInt64)
	}
	for radius := int64(near); ; radius *= 2 {
		if list := s.within(v, bound, radius); len(list) > 0 || radius > far {
			return list
		}
	}
}

// Links are looked for near first: most find a place within two hops.
const (
	near = 5 * hop / 2
	far  = 8 * hop
)

// within is choices, as far as no link costs more than radius.
func (s *search) within(v int, bound float64, radius int64) []choice {
	list := s.list()
	spare := bound - s.lowest()
	began := false
	for k, l := range s.problem.nodes[v].links {
		u := s.problem.links[l].far(v)
		if s.host[u] < 0 {
			continue
		}
		limit := radius
		if most := spare/s.problem.links[l].weight + hop; most < float64(radius) {
			limit = int64(most)
		}
		switch {
		case !began && s.problem.links[l].bound == 0:
			list = s.begin(list, v, k, l, u, limit, spare)
		case !began:
			list = s.price(s.everywhere(list, v), k, l, u, limit, spare)
		case len(list) > 0:
			list = s.price(list, k, l, u, limit, spare)
		}
		began = true
	}
	if !began {
		list = s.everywhere(list, v)
	}
	s.surveyed = v
	return list
}

// everywhere lists all hosts that have room for a node.
func (s *search) everywhere(list []choice, v int) []choice {
	for _, h := range s.candidates[v] {
		if s.roomy(v, h) {
			list = append(list, choice{h, s.charge(h), s.charge(h)})
		}
	}
	s.weighed += 2 * len(s.candidates[v])
	return list
}

// begin lists the hosts with room for a node that a link from a placed node
// reaches, as price does with a list that is there.
func (s *search) begin(list []choice, v, k, l, placed int, limit int64, spare float64) []choice {
	tree, weight, base := s.tree(k+1), s.problem.links[l].weight, 0.0
	if s.problem.apart {
		base = weight * hop
	}
	s.grow(tree, l, placed, limit)
	reached := tree.Reached()
	for _, h := range reached {
		host := int(h)
		if !s.suitable[v*len(s.left.sub.Hosts)+host] || !s.roomy(v, host) {
			continue
		}
		cost := weight*float64(tree.Cost(host)) + s.charge(host)
		if host == s.host[placed] && !s.carries(l, host) || cost-base > spare {
			continue
		}
		list = append(list, choice{host, cost, cost - base})
	}
	s.weighed += 2 * len(reached)
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
// those it cannot reach within a limit, and those at which the links so far
// cost more than spare above a hop each.
func (s *search) price(list []choice, k, l, placed int, limit int64, spare float64) []choice {
	v, from := &s.problem.links[l], s.host[placed]
	costs := s.costs(k, l, placed, list, limit)
	kept, base := list[:0], 0.0
	if s.problem.apart {
		base = v.weight * hop
	}
	for _, c := range list {
		cost, ok := costs(c.host)
		if c.host == from {
			cost, ok = 0, s.carries(l, from)
		}
		if above := c.excess + v.weight*float64(cost) - base; ok && above <= spare {
			kept = append(kept, choice{c.host, c.cost + v.weight*float64(cost), above})
		}
	}
	s.weighed += 2 * len(list)
	return kept
}

// costs finds what a unit of a link costs from an end that is placed to the
// hosts of a list.
func (s *search) costs(k, l, placed int, list []choice, limit int64) func(host int) (int64, bool) {
	v := &s.problem.links[l]
	if v.bound > 0 {
		query := s.query(l, placed)
		if len(list) == 1 {
			query.To = list[0].host
		}
		reach := s.graph.Reach(s.host[placed], query)
		return func(host int) (int64, bool) {
			hops, ok := reach.Hops(host)
			return int64(hops) * hop, ok
		}
	}
	tree := s.tree(k + 1)
	if len(list) <= few {
		for _, c := range list {
			tree.Seek(c.host)
		}
	}
	s.grow(tree, l, placed, limit)
	return func(host int) (int64, bool) {
		cost := tree.Cost(host)
		return cost, cost != graph.Unreached
	}
}

// few is how many hosts are looked for by name, and not by going everywhere.
const few = 1 << 20

// tree is the k-th working space for searches of least cost. The first is for
// single walks, the others for the links of the node surveyed last.
func (s *search) tree(k int) *graph.Least {
	for len(s.trees) <= k {
		s.trees = append(s.trees, s.graph.NewLeast())
	}
	return s.trees[k]
}

// grow finds walks of least cost from an end of a link that is placed.
func (s *search) grow(tree *graph.Least, l, placed int, limit int64) {
	v := &s.problem.links[l]
	out := v.outward(placed)
	s.prices.Need = [2][]int64{v.min[out], v.min[out.Opposite()]}
	tree.Grow(s.host[placed], limit, &s.prices)
}

// first brings the n-th cheapest choice to the n-th place, if those before
// are in theirs. Among equals it is the one with the most free capacity.
func (s *search) first(list []choice, n int) {
	best := n
	for i := n + 1; i < len(list); i++ {
		a, b := &list[i], &list[best]
		if a.cost < b.cost || a.cost == b.cost && s.rank[a.host] < s.rank[b.host] {
			best = i
		}
	}
	list[n], list[best] = list[best], list[n]
}
