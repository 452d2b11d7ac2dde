package embed

import (
	"math"
	"slices"

	"sublet/embed/graph"
)

// improve makes the embedding that is in place cheaper, until the allowed work
// is done. Networks small enough for it are solved by branch and bound after a
// first local search, since it ends the sooner the cheaper its first solution.
func (s *search) improve(limit int) {
	begun, all := s.spent(), limit-s.spent()
	s.localSearch(firstIdle*len(s.host), begun+all/2)
	share := all * 3 / 10
	if len(s.host) < exhaustiveBelow {
		share = all * 8 / 10
	}
	if s.optimizeAll(s.spent() + share) {
		s.branch.makesRoom = true
		s.optimizeAll(s.spent() + share)
		s.branch.makesRoom = false
		return
	}
	s.localSearch(lastIdle*len(s.host), limit)
}

// localSearch takes out a few connected nodes and puts them back where they cost
// less, first each node by itself, then random sets (large neighbourhood search,
// Shaw, CP 1998), until some steps in a row found nothing. Most steps look for
// the cheapest placement. Some accept an equal one, which leads out of local
// minima.
func (s *search) localSearch(patience, limit int) {
	s.workLimit = limit
	alone := 0
	for idle := 0; idle < patience && s.spent() < limit && s.cost > s.costFloor(); idle++ {
		better := false
		switch {
		case alone < len(s.host):
			better = s.relocate([]int{alone}, s.cost, 2)
		case s.random.below(10) < 3:
			set := s.neighbourhood(2 + s.random.below(maxOut-1))
			better = s.relocate(set, s.cost, 2*len(set))
		default:
			better = s.reoptimize(s.neighbourhood(3+s.random.below(maxOut-2)), reoptimizeTrials)
		}
		if alone++; better {
			idle, alone = 0, 0
		}
	}
}

// Steps without a gain after which localSearch ends, for each node of the network.
const (
	exhaustiveBelow = 6 // nodes; from there on branch and bound seldom comes to its end
	firstIdle       = 3
	lastIdle        = 30
)

// Bounds of one step.
const (
	maxOut           = 6   // nodes taken out
	hostsTried       = 3   // hosts tried for each, where not all are
	reoptimizeTrials = 100 // placements tried, where all are
)

// removal is a node that was taken out, or a link that went with it.
type removal struct {
	node, host int // node below 0: a link
	link       int
	walk       []graph.Arc
}

// branchWholeUpTo is the most nodes of a network that branch and bound tries whole.
const branchWholeUpTo = 10

// optimizeAll places all nodes of a network anew at the least cost. False: the
// allowed work did not suffice to know that nothing is cheaper.
func (s *search) optimizeAll(limit int) bool {
	if s.cost <= s.costFloor() {
		return true
	}
	if len(s.host) > branchWholeUpTo || s.spent() >= limit {
		return false
	}
	all := make([]int, len(s.host))
	for v := range all {
		all[v] = v
	}
	s.workLimit = limit
	s.reoptimize(all, math.MaxInt)
	return s.spent() <= limit
}

// reoptimize takes nodes out and puts them back at the least cost that is found
// with so many placements. True: the total cost fell.
func (s *search) reoptimize(set []int, trials int) bool {
	before := s.cost
	s.takeOut(set)
	if !s.reinsert(set, before*(1-1e-6), trials) {
		s.putBack()
		return false
	}
	return true
}

// relocate takes nodes out and puts them back where the total cost is at most
// bound. True: it fell.
func (s *search) relocate(set []int, bound float64, trials int) bool {
	before := s.cost
	s.takeOut(set)
	s.relocations, s.costBound = trials, bound
	found := s.insert(set, bound)
	s.costBound = unlimited
	if !found {
		s.putBack()
	}
	return found && s.cost < before*(1-1e-9)
}

// takeOut takes nodes out, so that putBack can undo it.
func (s *search) takeOut(set []int) {
	s.lifted = s.lifted[:0]
	for _, v := range set {
		if s.host[v] < 0 {
			continue
		}
		for _, l := range s.problem.nodes[v].links {
			if s.walks[l] != nil {
				s.lifted = append(s.lifted, removal{node: -1, link: l, walk: s.walks[l]})
			}
		}
		s.lifted = append(s.lifted, removal{node: v, host: s.host[v]})
		s.removeNode(v)
	}
}

// putBack undoes takeOut. None of its nodes may be placed again.
func (s *search) putBack() {
	for i := len(s.lifted) - 1; i >= 0; i-- {
		if m := s.lifted[i]; m.node >= 0 {
			s.occupy(m.node, m.host)
		}
	}
	for _, m := range s.lifted {
		if m.node < 0 {
			s.reserve(m.link, m.walk)
		}
	}
}

// removeAll takes out the placed nodes of a set.
func (s *search) removeAll(set []int) {
	for _, v := range set {
		if s.host[v] >= 0 {
			s.removeNode(v)
		}
	}
}

// costFloor is a lower bound on any embedding's cost: one hop for each link,
// where nodes may not share a host.
func (s *search) costFloor() float64 {
	if !s.problem.apart {
		return 0
	}
	sum := 0.0
	for l := range s.problem.links {
		sum += s.problem.links[l].weight
	}
	return sum * hop
}

// neighbourhood chooses connected nodes. The first is an end of a random link,
// more often of one with a high cost.
func (s *search) neighbourhood(size int) []int {
	set := []int{s.startNode()}
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

// startNode is an end of a link, chosen by what it costs above one hop.
func (s *search) startNode() int {
	if len(s.walks) == 0 || s.random.below(4) == 0 {
		return s.random.below(len(s.host))
	}
	best, most := 0, -1.0
	for range 2 {
		l := s.random.below(len(s.walks))
		if excess := s.linkCosts[l] - hop*s.problem.links[l].weight; excess > most {
			best, most = l, excess
		}
	}
	return s.problem.links[best].ends[s.random.below(2)]
}

// insert places the nodes of a set at a total cost of at most bound: depth first,
// the most connected node first, each on its cheapest hosts. False: no solution
// was found, and the set is not placed.
func (s *search) insert(set []int, bound float64) bool {
	if len(set) == 0 {
		return s.cost <= bound
	}
	i := s.mostConnected(set)
	v := set[i]
	set[i], set[0] = set[0], set[i]
	rest := s.lowest()
	if s.problem.apart {
		rest -= s.placedWeight(v) * hop
	}
	list := s.choices(v, bound)
	defer s.dropList()
	for n := range list {
		s.selectCheapest(list, n)
		c := list[n]
		if n == hostsTried || s.spent() > s.workLimit || rest+c.cost > bound || s.relocations <= 0 {
			break
		}
		s.relocations--
		if !s.placeNode(v, c.host) {
			continue
		}
		if s.cost <= bound && s.insert(set[1:], bound) {
			return true
		}
		s.removeNode(v)
	}
	return false
}

// mostConnected is the node of a set with the most traffic to placed nodes.
func (s *search) mostConnected(set []int) int {
	best, most := 0, -1.0
	s.effort.Spend(len(set))
	for i, v := range set {
		if joined := s.placedWeight(v); joined > most {
			best, most = i, joined
		}
	}
	return best
}
