package embed

import (
	"math"
	"slices"
)

// Effort, counted in placements of a node so that it is the same on every
// machine. With 12 attempts no root among the dozen emptiest hosts is missed.
const (
	maxAttempts = 12
	slack       = 24  // placements an attempt may take back
	effort      = 200 // in successful attempts, after which the best is taken
)

// attempts makes several greedy embeddings, each from another first host, and
// keeps the cheapest. A node that found no host is placed earlier next time.
func (s *search) attempts() bool {
	failed := make([]int, len(s.host))
	found, best := false, outcome{}
	s.patience = math.MaxInt // the first attempt may take what it needs
	for attempt, spent := 0, 0; attempt < maxAttempts && spent < effort; attempt++ {
		s.budget, s.deepest = len(s.host)+slack, outcome{depth: -1}
		placed := s.place(s.orderOf(failed), 0, attempt)
		if attempt == 0 {
			s.patience = s.graph.Steps() + maxSteps
		}
		if !placed {
			failed[s.deepest.node]++
			continue
		}
		spent += len(s.host)
		if o := s.outcome(); !found || o.cost < best.cost {
			found, best = true, o
		}
		s.clear()
		if best.cost == 0 {
			break
		}
	}
	if found {
		s.restore(best)
	}
	return found
}

// place puts the nodes of order from the k-th on. The first of them that has
// a choice does not get its best host but the one skip places further.
func (s *search) place(order []int, k, skip int) bool {
	if k == len(order) {
		return true
	}
	v := order[k]
	list := s.choices(v)
	if len(list) > 1 {
		skip %= len(list)
		list[0], list[skip] = list[skip], list[0]
		skip = 0
	}
	for _, c := range list {
		if s.tired() {
			break
		}
		if !s.settle(v, c.host) {
			continue
		}
		if s.place(order, k+1, skip) {
			return true
		}
		s.unsettle(v)
	}
	s.fail(v, k)
	return false
}

// fail notes that a node found no host, if the search never came further.
func (s *search) fail(v, depth int) {
	if depth > s.deepest.depth {
		s.deepest = s.outcome()
		s.deepest.depth, s.deepest.node = depth, v
	}
	if depth > s.worst.depth {
		s.worst = s.deepest
	}
}

// outcome copies where everything is.
func (s *search) outcome() outcome {
	o := outcome{host: slices.Clone(s.host), walks: slices.Clone(s.walks)}
	for l, walk := range s.walks {
		o.cost += s.problem.links[l].weight * float64(len(walk))
	}
	return o
}

// clear takes everything back.
func (s *search) clear() {
	for v, host := range s.host {
		if host >= 0 {
			s.unsettle(v)
		}
	}
}

// restore puts everything, and only what, an outcome holds.
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
