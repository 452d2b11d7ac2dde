package embed

import (
	"math"
	"slices"
)

// Bounds of the greedy attempts. What they find decides what is accepted:
// many short ones, each with another order, find more than a few long ones
// (docs/embedding.md).
const (
	fewAttempts = 12 // for networks that trying everything decides
	maxAttempts = 500
	enough      = 4   // embeddings found, of which the cheapest is improved
	slack       = 24  // placements an attempt may take back
	plain       = 4   // attempts without noise
	noise       = 300 // thousandths by which a host may look dearer than it is
)

// attempts makes several greedy embeddings, each from another first host, and
// keeps the cheapest. A node that found no host is placed earlier next time
// (as in dom/wdeg: Boussemart et al., ECAI 2004). The first attempt is made
// whatever the limit.
func (s *search) attempts(limit int) bool {
	failed := make([]int, len(s.host))
	found, best := 0, outcome{}
	most := maxAttempts
	if len(s.host) <= mostExhaust {
		most = fewAttempts
	}
	for attempt := 0; attempt < most && found < enough && (attempt == 0 || s.spent() < limit); attempt++ {
		if !s.attempt(attempt, failed, limit) {
			failed[s.deepest.node]++
			if s.noisy = true; found > 0 || attempt+1 < plain || !s.mended(limit) {
				continue
			}
		}
		if found == 0 || s.cost < best.cost {
			best = s.outcome()
		}
		found++
		s.clear()
		if best.cost == 0 || attempt >= plain {
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
	s.budget, s.deepest, s.noisy = len(s.host)+slack, outcome{depth: -1}, number >= plain
	s.patience = s.until(math.MaxInt / 2) // the first may take what it needs
	if number > 0 {
		s.patience = limit
	}
	return s.place(s.orderOf(failed), 0, number)
}

// place puts the nodes of order from the k-th on. The first of them that has
// a choice does not get its best host but the one skip places further.
func (s *search) place(order []int, k, skip int) bool {
	if k == len(order) {
		return true
	}
	v := order[k]
	list := s.present(v)
	defer s.drop()
	s.blur(list)
	if len(list) > 1 {
		skip %= len(list)
		for n := range skip + 1 {
			s.first(list, n)
		}
		list[0], list[skip] = list[skip], list[0]
		skip = 0
	}
	for n := range list {
		if n > 0 {
			s.first(list, n)
		}
		c := list[n]
		if s.tired() {
			break
		}
		if !s.settle(v, c.host) {
			continue
		}
		if !s.strangled() && s.place(order, k+1, skip) {
			return true
		}
		s.unsettle(v)
	}
	s.fail(v, k)
	return false
}

// blur makes hosts look dearer than they are, each by another part: attempts
// that would all end alike then go different ways.
func (s *search) blur(list []choice) {
	if !s.noisy {
		return
	}
	for i := range list {
		list[i].cost *= 1 + float64(s.random.below(noise))/1000
	}
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
	o := outcome{host: slices.Clone(s.host), walks: slices.Clone(s.walks), cost: s.cost}
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

// mended says whether what the last attempt came to could be completed.
func (s *search) mended(limit int) bool {
	s.restore(s.deepest)
	if s.repair(repairRounds, limit) {
		return true
	}
	s.clear()
	return false
}

// repairRounds is for how long nothing more is placed until it is given up.
const repairRounds = 40
