package embed

import (
	"math"
	"slices"
)

// Bounds of the greedy attempts. What they find decides what is accepted:
// many short ones, each with another order, find more than a few long ones
// (docs/embedding.md).
const (
	fewAttempts         = 12 // for networks that trying everything decides soon
	fewNodes            = 5  // of networks for which so few are made
	maxAttempts         = 500
	enoughFound         = 4   // embeddings; the cheapest of them is improved
	maxTakenBack        = 24  // placements that an attempt may take back
	unperturbedAttempts = 4   // attempts with true costs
	maxPerturbation     = 300 // thousandths that are added to a cost at most
)

// attempts makes several greedy embeddings, each from another first host, and
// keeps the cheapest. A node that found no host is placed earlier next time
// (as in dom/wdeg: Boussemart et al., ECAI 2004). The first attempt is made
// whatever the limit.
func (s *search) attempts(limit int) bool {
	failed := make([]int, len(s.host))
	found, best := 0, outcome{}
	most := maxAttempts
	if len(s.host) <= fewNodes {
		most = fewAttempts
	}
	for attempt := 0; attempt < most && found < enoughFound && (attempt == 0 || s.spent() < limit); attempt++ {
		if !s.attempt(attempt, failed, limit) {
			failed[s.deepest.node]++
			if s.perturbed = true; found > 0 || attempt+1 < unperturbedAttempts || !s.repaired(limit) {
				continue
			}
		}
		if found == 0 || s.cost < best.cost {
			best = s.outcome()
		}
		found++
		s.clear()
		if best.cost == 0 || attempt >= unperturbedAttempts {
			break
		}
	}
	if found > 0 {
		s.restore(best)
	}
	return found > 0
}

// attempt makes one greedy embedding.
func (s *search) attempt(number int, failed []int, limit int) bool {
	s.placements, s.deepest, s.perturbed = len(s.host)+maxTakenBack, outcome{depth: -1}, number >= unperturbedAttempts
	s.workLimit = s.until(math.MaxInt / 2) // the first may take what it needs
	if number > 0 {
		s.workLimit = limit
	}
	return s.place(s.orderOf(failed), 0, number)
}

// place places the nodes of order from the k-th on. The first node that has a
// choice gets the host skip places after its best one.
func (s *search) place(order []int, k, skip int) bool {
	if k == len(order) {
		return true
	}
	v := order[k]
	list := s.residualChoices(v)
	defer s.dropList()
	s.perturb(list)
	if len(list) > 1 {
		skip %= len(list)
		for n := range skip + 1 {
			s.selectCheapest(list, n)
		}
		list[0], list[skip] = list[skip], list[0]
		skip = 0
	}
	for n := range list {
		if n > 0 {
			s.selectCheapest(list, n)
		}
		c := list[n]
		if s.tired() {
			break
		}
		if !s.placeNode(v, c.host) {
			continue
		}
		if !s.cutOff() && s.place(order, k+1, skip) {
			return true
		}
		s.removeNode(v)
	}
	s.fail(v, k)
	return false
}

// perturb raises the cost of each choice by a random part, so that attempts that
// would all end alike differ.
func (s *search) perturb(list []choice) {
	if !s.perturbed {
		return
	}
	for i := range list {
		list[i].cost *= 1 + float64(s.random.below(maxPerturbation))/1000
	}
}

// fail notes that a node found no host, if no failure had more nodes placed.
func (s *search) fail(v, depth int) {
	if depth > s.deepest.depth {
		s.deepest = s.outcome()
		s.deepest.depth, s.deepest.node = depth, v
	}
	if depth > s.furthest.depth {
		s.furthest = s.deepest
	}
}

// outcome copies the state.
func (s *search) outcome() outcome {
	o := outcome{host: slices.Clone(s.host), walks: slices.Clone(s.walks), cost: s.cost}
	return o
}

// clear takes out all nodes.
func (s *search) clear() {
	for v, host := range s.host {
		if host >= 0 {
			s.removeNode(v)
		}
	}
}

// restore makes the state that of an outcome.
func (s *search) restore(o outcome) {
	s.clear()
	for v, host := range o.host {
		if host >= 0 {
			s.occupy(v, host)
		}
	}
	for l, walk := range o.walks {
		if walk != nil {
			s.reserve(l, walk)
		}
	}
}

// repaired completes the furthest state of the last attempt; false: it could not.
func (s *search) repaired(limit int) bool {
	s.restore(s.deepest)
	if s.repair(repairRounds, limit) {
		return true
	}
	s.clear()
	return false
}

// repairRounds is how many rounds in a row may place nothing more.
const repairRounds = 40
