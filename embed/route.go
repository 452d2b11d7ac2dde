package embed

import (
	"math"
	"slices"

	"sublet/embed/graph"
	"sublet/vnet"
)

// query asks for walks that carry a link outward from one of its ends.
func (s *search) query(l, from int) graph.Query {
	v := &s.problem.links[l]
	out := v.outward(from)
	return graph.Query{To: -1, Bound: v.bound, Allow: func(a graph.Arc) bool {
		return s.residual.fits(s.residual.arc(a), v.min[out]) && s.residual.fits(s.residual.arc(a.Opposite()), v.min[out.Opposite()])
	}}
}

// outward is the direction that leaves an end of a link.
func (l *link) outward(end int) vnet.Direction {
	if l.ends[1] == end {
		return vnet.Reverse
	}
	return vnet.Forward
}

// carries says whether a link fits inside a host, and is fast enough there.
func (s *search) carries(l, host int) bool {
	v := &s.problem.links[l]
	return (v.bound == 0 || s.residual.sub.Hosts[host].Inside <= v.bound) &&
		s.residual.fits(s.residual.inside(host, vnet.Forward), v.min[vnet.Forward]) &&
		s.residual.fits(s.residual.inside(host, vnet.Reverse), v.min[vnet.Reverse])
}

// route finds the shortest way for a link whose ends are placed, and takes it.
func (s *search) route(l int) bool {
	v := &s.problem.links[l]
	from, to := s.host[v.ends[0]], s.host[v.ends[1]]
	if from == to {
		if s.carries(l, from) {
			s.reserve(l, []graph.Arc{})
		}
		return s.walks[l] != nil
	}
	if walk, ok := s.walk(l, from, to); ok {
		s.reserve(l, walk)
	}
	return s.walks[l] != nil
}

// walk finds the cheapest walk for a link between two hosts or, where relays
// cannot hold that, the shortest that they can.
func (s *search) walk(l, from, to int) ([]graph.Arc, bool) {
	walk, ok := s.cheapestWalk(l, from, to)
	if ok && !s.graph.Pinned(walk) {
		query := s.query(l, s.problem.links[l].ends[0])
		query.To = to
		return s.graph.ReachPinned(from, query)
	}
	return walk, ok
}

// cheapestWalk is the cheapest walk whatever relays it takes.
func (s *search) cheapestWalk(l, from, to int) ([]graph.Arc, bool) {
	first := s.problem.links[l].ends[0]
	if v := &s.problem.links[l]; v.bound == 0 {
		s.prices.Need = [2][]int64{v.min[0], v.min[1]}
		if s.uniform {
			if walk, known := s.fewestHops(l, from, to); known {
				return walk, walk != nil
			}
		}
		s.shortest.Seek(to)
		s.shortest.Grow(from, math.MaxInt64, &s.prices)
		return s.shortest.Walk(to)
	}
	query := s.query(l, first)
	query.To = to
	reach := s.graph.Reach(from, query)
	if _, ok := reach.Hops(to); !ok {
		return nil, false
	}
	return reach.Walk(to), true
}

// shortestWalk is the shortest walk that a query admits and relays can hold.
func (s *search) shortestWalk(from int, q graph.Query) ([]graph.Arc, bool) {
	reach := s.graph.Reach(from, q)
	if _, ok := reach.Hops(q.To); !ok {
		return nil, false
	}
	if walk := reach.Walk(q.To); s.graph.Pinned(walk) {
		return walk, true
	}
	return s.graph.ReachPinned(from, q)
}

// reserve takes a link's minima along a walk; the empty one stays in the host.
func (s *search) reserve(l int, walk []graph.Arc) {
	s.walks[l] = walk
	s.linkCosts[l] = 0
	for _, a := range walk {
		s.linkCosts[l] += float64(s.prices.Price[a])
	}
	s.linkCosts[l] *= s.problem.links[l].weight
	s.cost += s.linkCosts[l]
	s.openWeight -= s.problem.links[l].weight
	s.load(l, 1)
}

// unroute undoes reserve, if it was done.
func (s *search) unroute(l int) {
	if s.walks[l] != nil {
		s.load(l, -1)
		s.cost -= s.linkCosts[l]
		s.openWeight += s.problem.links[l].weight
		s.walks[l] = nil
	}
}

// load takes or gives back what a link uses.
func (s *search) load(l int, sign int64) {
	v := &s.problem.links[l]
	for _, dir := range vnet.Directions {
		if len(s.walks[l]) == 0 {
			s.residual.take(s.residual.inside(s.host[v.ends[0]], dir), v.min[dir], sign)
		}
		for _, a := range s.walks[l] {
			s.residual.take(s.residual.arc(a^graph.Arc(dir)), v.min[dir], sign)
		}
	}
}

// mapping names the search's hosts and paths.
func (s *search) mapping(hosts []vnet.SubstrateNode) vnet.Mapping {
	m := vnet.Mapping{Nodes: make(map[string]vnet.HostID, len(s.host)), Links: make(map[string]vnet.Path, len(s.walks))}
	for v, h := range s.host {
		m.Nodes[s.problem.nodes[v].name] = hosts[h].Name
	}
	for l, walk := range s.walks {
		m.Links[s.problem.links[l].name] = s.graph.Path(walk)
	}
	return m
}

// mostExtra is how many hops more than at the least are looked for cleverly.
const mostExtra = 2

// fewestHops finds the walk of a link with the fewest hops, no dearer than the
// bound of what is being tried; false: it does not know.
func (s *search) fewestHops(l, from, to int) (walk []graph.Arc, known bool) {
	v := &s.problem.links[l]
	row := s.row(l, v.ends[0])
	if row[to] >= graph.Far {
		return nil, true
	}
	most, bounded := int(row[to])/hop+mostExtra, false
	if spare := (s.costBound - s.lowest()) / (hop * v.weight); spare < float64(most) {
		most, bounded = int(spare)+1, true
	}
	if cap(s.arena)-len(s.arena) < most {
		s.arena = make([]graph.Arc, 0, 4096+most)
	}
	n := len(s.arena)
	walk, known = s.graph.Shortest(graph.Detour{From: from, To: to, Cost: row, Price: hop, Most: most}, &s.prices, s.arena[n:])
	s.arena = s.arena[:n+len(walk)]
	return slices.Clip(walk), walk != nil || known && bounded
}
