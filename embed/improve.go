package embed

import (
	"math"
	"slices"

	"sublet/embed/graph"
)

// improve makes the embedding that is in place cheaper, until the allowed work
// is done. Networks that branch and bound can try whole are tried so, larger
// ones after a first polish: it ends the sooner the cheaper what it begins with.
func (s *search) improve(limit int) {
	begun, all := s.spent(), limit-s.spent()
	s.polish(firstPatience*len(s.host), begun+all/2)
	share := all * 3 / 10
	if len(s.host) < many {
		share = all * 8 / 10
	}
	if s.perfect(s.spent() + share) {
		s.branching.presses = true
		s.perfect(s.spent() + share)
		s.branching.presses = false
		return
	}
	s.polish(lastPatience*len(s.host), limit)
}

// polish takes out a few nodes that hang together and puts them back where
// they cost less, first each by itself, then random ones (large neighbourhood
// search, Shaw, CP 1998), until nothing was found for some steps. Most steps
// look for the cheapest way to put them back; some only for one that is as
// cheap, which leads on from where no step makes anything better.
func (s *search) polish(patience, limit int) {
	s.patience = limit
	alone := 0
	for idle := 0; idle < patience && s.spent() < limit && s.cost > s.floor(); idle++ {
		better := false
		switch {
		case alone < len(s.host):
			better = s.shift([]int{alone}, s.cost, 2)
		case s.random.below(10) < 3:
			set := s.neighbourhood(2 + s.random.below(maxOut-1))
			better = s.shift(set, s.cost, 2*len(set))
		default:
			better = s.renew(s.neighbourhood(3+s.random.below(maxOut-2)), mostTrials)
		}
		if alone++; better {
			idle, alone = 0, 0
		}
	}
}

// Steps without a gain after which polish ends, for each node of the network.
const (
	many          = 6 // nodes, from which on trying all placements seldom comes to its end
	firstPatience = 3
	lastPatience  = 30
)

// Bounds of one step.
const (
	maxOut     = 6   // nodes taken out
	width      = 3   // hosts tried for each, where not all are
	mostTrials = 100 // placements tried, where all are
)

// moved is a node that was taken out, or a link with it.
type moved struct {
	node, host int // node below 0: a link
	link       int
	walk       []graph.Arc
}

// mostBranch is the most nodes of a network that branch and bound tries whole.
const mostBranch = 10

// perfect puts all nodes of a network anew in the cheapest way. False: that
// there is nothing better was not found out with the work allowed.
func (s *search) perfect(limit int) bool {
	if s.cost <= s.floor() {
		return true
	}
	if len(s.host) > mostBranch || s.spent() >= limit {
		return false
	}
	all := make([]int, len(s.host))
	for v := range all {
		all[v] = v
	}
	s.patience = limit
	s.renew(all, math.MaxInt)
	return s.spent() <= limit
}

// renew takes nodes out and puts them back in the cheapest way that is found
// with so many placements; true: everything costs less than before.
func (s *search) renew(set []int, trials int) bool {
	before := s.cost
	s.lift(set)
	if !s.recruit(set, before*(1-1e-6), trials) {
		s.putBack()
		return false
	}
	return true
}

// shift takes nodes out and puts them back where everything costs at most
// bound; true: it costs less than before.
func (s *search) shift(set []int, bound float64, trials int) bool {
	before := s.cost
	s.lift(set)
	s.trials, s.bound = trials, bound
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
		if n == width || s.spent() > s.patience || rest+c.cost > bound || s.trials <= 0 {
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
	s.effort.Spend(len(set))
	for i, v := range set {
		if joined := s.joined(v); joined > most {
			best, most = i, joined
		}
	}
	return best
}
