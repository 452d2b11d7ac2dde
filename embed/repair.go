package embed

import "slices"

// repair completes a partial embedding: it takes out a few nodes around one
// that found no host, and puts all of them back, the one first; where no more
// is missing than before it goes on from there. What is missing counts the
// more the oftener it was missing, which leads out of dead ends (breakout:
// Morris, AAAI 1993; large neighbourhoods: Shaw, CP 1998). False: something is
// still missing after so many rounds in which nothing more was placed.
func (s *search) repair(rounds, limit int) bool {
	weight := make([]int, len(s.host))
	missing, least := s.missing(weight)
	for idle := 0; len(missing) > 0; idle++ {
		if idle == rounds || s.spent() > limit || s.effort.Over() {
			return false
		}
		was := 0
		for _, v := range missing {
			weight[v]++
		}
		missing, was = s.missing(weight)
		s.ruin(missing)
		s.recreate(weight)
		if left, now := s.missing(weight); now > was {
			s.removeAll(s.removed)
			s.putBack()
		} else if missing = left; len(left) < least {
			least, idle = len(left), 0
		}
	}
	return true
}

// missing lists the nodes without a host; and their weights, with one each.
func (s *search) missing(weight []int) (nodes []int, sum int) {
	for v, host := range s.host {
		if host < 0 {
			nodes = append(nodes, v)
			sum += 1 + weight[v]
		}
	}
	return nodes, sum
}

// Bounds of a round: placed nodes taken out, and hosts tried for a node.
const (
	mostRuined = 5
	mostTried  = 3
)

// ruin takes out nodes around one of those that are missing, the target, and
// lists what is to be put back.
func (s *search) ruin(missing []int) {
	target := missing[s.random.below(len(missing))]
	s.removed = append(s.removed[:0], target)
	for range 1 + s.random.below(mostRuined) {
		of := s.problem.nodes[s.removed[s.random.below(len(s.removed))]].links
		if len(of) == 0 {
			continue
		}
		l := &s.problem.links[of[s.random.below(len(of))]]
		for _, end := range l.ends {
			if s.host[end] >= 0 && !slices.Contains(s.removed, end) {
				s.removed = append(s.removed, end)
			}
		}
	}
	s.takeOut(s.removed)
	for _, v := range missing {
		if v != target {
			s.removed = append(s.removed, v)
		}
	}
}

// recreate puts back what it can of what is out: the target, then always the
// node that has most traffic with what is placed.
func (s *search) recreate(weight []int) {
	for left := s.removed; len(left) > 0; left = left[1:] {
		i := 0
		if len(left) < len(s.removed) {
			i = s.mostConnected(left)
		}
		left[0], left[i] = left[i], left[0]
		s.placeGreedily(left[0])
	}
}

// placeGreedily puts a node on one of the cheapest hosts that take it, if there are.
func (s *search) placeGreedily(v int) {
	list := s.residualChoices(v)
	defer s.dropList()
	s.perturb(list)
	for n := range min(len(list), mostTried) {
		s.selectCheapest(list, n)
		if !s.placeNode(v, list[n].host) {
			continue
		}
		if !s.cutOff() {
			return
		}
		s.removeNode(v)
	}
}
