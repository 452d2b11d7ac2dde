package embed

import (
	"slices"

	"sublet/embed/graph"
)

// Bounds of the exhaustive search: enough to try everything for four nodes on
// four hosts, little enough for a refusal to take milliseconds.
const (
	maxWalks = 64      // paths tried for a link
	maxTrial = 20000   // nodes placed and paths taken
	maxSteps = 300_000 // arcs looked at
)

// exhaust tries every host for every node and every path for every link, the
// cheapest first, until one embedding is found or a bound is reached. Hosts
// that a link cannot reach even now are left out.
func (s *search) exhaust(work int) bool {
	s.placements, s.workLimit = maxTrial, s.until(min(work, maxSteps))
	s.tryAllEquivalent = true
	defer func() { s.tryAllEquivalent = false }()
	return s.everyHost(s.orderOf(make([]int, len(s.host))), 0)
}

// tired counts one trial, and says whether a bound is reached.
func (s *search) tired() bool {
	s.placements--
	return s.placements < 0 || s.spent() > s.workLimit || s.effort.Over()
}

// everyHost places the nodes of order from the k-th on.
func (s *search) everyHost(order []int, k int) bool {
	if k == len(order) {
		return true
	}
	v := order[k]
	list := s.choices(v, unlimited)
	defer s.dropList()
	for n := range list {
		s.selectCheapest(list, n)
		c := list[n]
		if s.tired() {
			break
		}
		s.occupy(v, c.host)
		if s.everyPath(order, k, 0) {
			return true
		}
		s.vacate(v)
	}
	s.fail(v, k)
	return false
}

// everyPath routes the links of the k-th node from the i-th on, to nodes
// already placed, and goes on to the next node.
func (s *search) everyPath(order []int, k, i int) bool {
	v := order[k]
	links := s.problem.nodes[v].links
	for i < len(links) && s.host[s.problem.links[links[i]].far(v)] < 0 {
		i++
	}
	if i == len(links) {
		return s.everyHost(order, k+1)
	}
	for _, walk := range s.possibleWalks(links[i]) {
		if s.tired() {
			return false
		}
		s.reserve(links[i], walk)
		if s.everyPath(order, k, i+1) {
			return true
		}
		s.unroute(links[i])
	}
	return false
}

// possibleWalks lists the walks a link between placed nodes could take now.
func (s *search) possibleWalks(l int) [][]graph.Arc {
	v := &s.problem.links[l]
	from, to := s.host[v.ends[0]], s.host[v.ends[1]]
	if from != to {
		return s.walksTo(from, to, s.query(l, v.ends[0]))
	}
	if s.carries(l, from) {
		return [][]graph.Arc{{}}
	}
	return nil
}

// walksTo lists walks that a query admits and relays can hold.
func (s *search) walksTo(from, to int, q graph.Query) [][]graph.Arc {
	all := s.graph.Walks(from, to, maxWalks, q)
	held := slices.DeleteFunc(all, func(walk []graph.Arc) bool { return !s.graph.Pinned(walk) })
	if q.To = to; len(held) == 0 && len(all) > 0 {
		if walk, ok := s.graph.ReachPinned(from, q); ok {
			return [][]graph.Arc{walk}
		}
	}
	return held
}
