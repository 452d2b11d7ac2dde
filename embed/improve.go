package embed

import (
	"cmp"
	"math"
	"slices"

	"sublet/embed/graph"
)

// improve makes the embedding that is in place cheaper. It takes out a few
// nodes that hang together and puts them back where they cost less, first
// each by itself, then random ones (large neighbourhood search, Shaw, CP
// 1998), until the allowed work is done or nothing was found for long.
func (s *search) improve(limit int) {
	for s.perfect(limit) {
	}
	s.patience = limit
	idle, alone := 0, 0
	for patience := 30 * len(s.host); idle < patience && s.spent() < limit && s.cost > s.floor(); idle++ {
		set := []int{alone % len(s.host)}
		if alone >= len(s.host) {
			set = s.neighbourhood(2 + s.random.below(maxOut-1))
		}
		alone++
		if s.shift(set, s.cost, width, 2*len(set)) {
			idle, alone = 0, 0
		}
	}
}

// Bounds of one step: nodes taken out, and hosts tried for each.
const (
	maxOut = 6
	width  = 3
)

// moved is a node that was taken out, or a link with it.
type moved struct {
	node, host int // node below 0: a link
	link       int
	walk       []graph.Arc
}

// perfect puts all nodes of a small network anew where everything costs less
// than it does: it tries all hosts for all nodes, but for those that cannot
// lead there (branch and bound). False: there is nothing better, or the work
// allowed does not suffice to find it.
func (s *search) perfect(limit int) bool {
	if len(s.host) > mostExhaust || s.cost <= s.floor() || s.spent() >= limit {
		return false
	}
	all := make([]int, len(s.host))
	for v := range all {
		all[v] = v
	}
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Compare(s.problem.nodes[b].traffic, s.problem.nodes[a].traffic)
	})
	s.patience = limit
	return s.shift(all, s.cost*(1-1e-6), math.MaxInt, math.MaxInt)
}

// shift takes nodes out and puts them back where everything costs at most
// bound; true: it costs less than before.
func (s *search) shift(set []int, bound float64, width, trials int) bool {
	before := s.cost
	s.lift(set)
	s.width, s.trials, s.bound = width, trials, bound
	found := s.insert(set, bound)
	s.bound = unlimited
	if !found {
		s.putBack()
	}
	return found && s.cost < before*(1-1e-9)
}

// lift takes nodes out, so that putBack can undo it.
func (s *search) lift(set []int) {
	s.undo = s.undo[:0]
	for _, v := range set {
		if s.host[v] < 0 {
			continue
		}
		for _, l := range s.problem.nodes[v].links {
			if s.walks[l] != nil {
				s.undo = append(s.undo, moved{node: -1, link: l, walk: s.walks[l]})
			}
		}
		s.undo = append(s.undo, moved{node: v, host: s.host[v]})
		s.unsettle(v)
	}
}

// putBack puts what was lifted where it was. All of it must be out.
func (s *search) putBack() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		if m := s.undo[i]; m.node >= 0 {
			s.occupy(m.node, m.host)
		}
	}
	for _, m := range s.undo {
		if m.node < 0 {
			s.reserve(m.link, m.walk)
		}
	}
}

// withdraw takes out those of some nodes that are placed.
func (s *search) withdraw(set []int) {
	for _, v := range set {
		if s.host[v] >= 0 {
			s.unsettle(v)
		}
	}
}

// floor is less than any embedding can cost: each link at least one hop, where
// nodes may not share a host.
func (s *search) floor() float64 {
	if !s.problem.apart {
		return 0
	}
	sum := 0.0
	for l := range s.problem.links {
		sum += s.problem.links[l].weight
	}
	return sum * hop
}

// neighbourhood chooses nodes that hang together. The first is an end of a
// random link, dear ones more often.
func (s *search) neighbourhood(size int) []int {
	set := []int{s.seedNode()}
	for range 4 * size {
		if len(set) == min(size, len(s.host)) {
			break
		}
		of := s.problem.nodes[set[s.random.below(len(set))]].links
		if len(of) == 0 {
			break
		}
		l := of[s.random.below(len(of))]
		for _, end := range s.problem.links[l].ends {
			if !slices.Contains(set, end) {
				set = append(set, end)
			}
		}
	}
	return set
}

// seedNode is an end of a link, chosen by what it costs above one hop.
func (s *search) seedNode() int {
	if len(s.walks) == 0 || s.random.below(4) == 0 {
		return s.random.below(len(s.host))
	}
	best, most := 0, -1.0
	for range 2 {
		l := s.random.below(len(s.walks))
		if excess := s.paid[l] - hop*s.problem.links[l].weight; excess > most {
			best, most = l, excess
		}
	}
	return s.problem.links[best].ends[s.random.below(2)]
}

// insert puts the nodes of a set back so that everything costs less than
// bound, or as much with an equal chance: depth first, the dearest node first,
// at each its cheapest hosts. False: none was found, and the set is out.
func (s *search) insert(set []int, bound float64) bool {
	if len(set) == 0 {
		return s.cost <= bound
	}
	i := s.next(set)
	v := set[i]
	set[i], set[0] = set[0], set[i]
	rest := s.lowest()
	if s.problem.apart {
		rest -= s.joined(v) * hop
	}
	list := s.choices(v, bound)
	defer s.drop()
	for n := range list {
		s.first(list, n)
		c := list[n]
		if n == s.width || s.spent() > s.patience || rest+c.cost > bound || s.trials <= 0 {
			break
		}
		s.trials--
		if !s.settle(v, c.host) {
			continue
		}
		if s.cost <= bound && s.insert(set[1:], bound) {
			return true
		}
		s.unsettle(v)
	}
	return false
}

// next is the node of a set that has most traffic with what is placed.
func (s *search) next(set []int) int {
	best, most := 0, -1.0
	for i, v := range set {
		if joined := s.joined(v); joined > most {
			best, most = i, joined
		}
	}
	return best
}
