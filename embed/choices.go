package embed

import (
	"math"

	"sublet/embed/graph"
)

// choice is a host for a node with the cost of the node's links to placed nodes.
type choice struct {
	host   int
	cost   float64
	excess float64 // the part of cost above one hop for each link
}

// newList is an empty list of choices for one level of a depth-first search,
// which gives it back with dropList.
func (s *search) newList() []choice {
	for s.listsInUse > len(s.choiceLists) {
		s.choiceLists = append(s.choiceLists, make([]choice, 0, len(s.residual.sub.Hosts)))
	}
	return s.choiceLists[s.listsInUse-1][:0]
}

// dropList gives the last list back.
func (s *search) dropList() { s.listsInUse-- }

// unlimited is no bound on costs.
const unlimited = math.MaxFloat64

// choices lists the hosts that could take a node now, in no order, with a lower
// bound on the cost of its links to placed nodes (see costTables). Hosts at which
// everything would cost more than bound may be missing.
func (s *search) choices(v int, bound float64) []choice {
	s.listsInUse++
	list := s.hostsFor(s.newList(), v)
	spare := bound - s.lowest()
	for _, l := range s.problem.nodes[v].links {
		if u := s.problem.links[l].far(v); s.host[u] >= 0 && len(list) > 0 {
			list = s.addLinkCost(list, l, u, spare)
		}
	}
	return list
}

// residualChoices is choices without a bound. Links cost what they cost beside
// what is placed of the network (see residualRow).
func (s *search) residualChoices(v int) []choice {
	s.residualCosts = true
	defer func() { s.residualCosts = false }()
	return s.choices(v, unlimited)
}

// hostsFor lists all hosts that a node fits on.
func (s *search) hostsFor(list []choice, v int) []choice {
	s.equivalent.nextRound()
	for _, h := range s.shortlists[v] {
		if s.fits(v, h) && (s.tryAllEquivalent || s.equivalent.firstOfGroup(h)) {
			charge := s.hostCost(h)
			list = append(list, choice{h, charge, charge})
		}
	}
	s.otherWork += len(s.shortlists[v]) / 4
	return list
}

// lowest is a lower bound on the total cost once the rest is placed: where nodes
// may not share a host, each link without a walk takes one hop at least.
func (s *search) lowest() float64 {
	if !s.problem.apart {
		return s.cost
	}
	return s.cost + s.openWeight*hop
}

// placedWeight is the weight of a node's links to placed nodes.
func (s *search) placedWeight(v int) float64 {
	sum := 0.0
	for _, l := range s.problem.nodes[v].links {
		if s.host[s.problem.links[l].far(v)] >= 0 {
			sum += s.problem.links[l].weight
		}
	}
	return sum
}

// addLinkCost adds the cost of a link from a placed node to each choice. It drops
// hosts that the link cannot reach, and hosts at which the links so far cost
// more than spare above one hop each.
func (s *search) addLinkCost(list []choice, l, placed int, spare float64) []choice {
	row, live := s.residualRow(l, placed)
	from, even := s.host[placed], s.uniform && !live
	weight, base, kept := s.problem.links[l].weight, 0.0, 0
	if s.problem.apart {
		base = weight * hop
	}
	s.otherWork += len(list) / 4
	s.need(l, placed)
	for i := range list {
		c := &list[i]
		cost := row[c.host]
		if live {
			if g := s.graph.Only(c.host); g >= 0 && c.host != from {
				cost = row[g] + hop
			}
		}
		more := weight * float64(cost)
		if cost >= graph.Far || c.excess+more-base > spare || c.host == from && !s.carries(l, from) {
			continue
		}
		if cost == hop && even && s.graph.Closed(from, c.host, &s.prices) {
			if more += weight * hop; c.excess+more-base > spare {
				continue // the network's own links fill it
			}
		}
		list[kept] = choice{c.host, c.cost + more, c.excess + more - base}
		kept++
	}
	return list[:kept]
}

// need sets what a link needs outward from one of its ends.
func (s *search) need(l, placed int) {
	v := &s.problem.links[l]
	out := v.outward(placed)
	s.prices.Need = [2][]int64{v.min[out], v.min[out.Opposite()]}
	s.prices.Prepare()
}

// selectCheapest swaps the cheapest choice from the n-th on to the n-th place. Of
// equal choices it takes the host of the lowest tieRank.
func (s *search) selectCheapest(list []choice, n int) {
	best := n
	for i := n + 1; i < len(list); i++ {
		a, b := &list[i], &list[best]
		if a.cost < b.cost || a.cost == b.cost && s.tieRank(a.host) < s.tieRank(b.host) {
			best = i
		}
	}
	list[n], list[best] = list[best], list[n]
}

// tieRank orders equal choices: by rank, from firstRank on.
func (s *search) tieRank(host int) int {
	if at := s.rank[host] - s.firstRank; at >= 0 {
		return at
	}
	return s.rank[host] - s.firstRank + len(s.rank)
}
