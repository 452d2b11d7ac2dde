package embed

import (
	"cmp"
	"maps"
	"slices"

	"sublet/embed/graph"
	"sublet/vnet"
)

// equivalence groups hosts that have one link each, to the same neighbour. For a
// node that fits on several hosts of a group they differ only in the bandwidth
// that stays unused. So a node is tried on one host of each group, the one with
// the least bandwidth that suffices. Hosts with more bandwidth are kept for the
// nodes that need it.
type equivalence struct {
	group []int // by host: its neighbour; -1: no other host is equivalent
	any   bool  // whether there is a group
	seen  []int // by neighbour: the round in which a host of the group was last listed
	round int
}

// groupEquivalent finds the groups, if all hosts of a group cost the same for
// every link.
func (s *search) groupEquivalent() {
	t := &s.equivalent
	t.group, t.seen = make([]int, len(s.residual.sub.Hosts)), make([]int, len(s.residual.sub.Hosts))
	even := s.uniform && s.problem.apart
	for l := range s.problem.links {
		even = even && s.problem.links[l].bound == 0
	}
	for h := range t.group {
		t.group[h] = -1
		if arcs := s.graph.Leaving(h); even && len(arcs) == 1 && len(s.graph.Leaving(s.graph.Head(arcs[0]))) > 1 {
			t.group[h], t.any = s.graph.Head(arcs[0]), true
		}
	}
}

// shortlist drops candidates that cannot be of use: of each group it keeps as
// many hosts as the network has nodes, those with the least bandwidth first.
func (s *search) shortlist(candidates []int) []int {
	if !s.equivalent.any {
		return candidates
	}
	groups := make(map[int][]int)
	var list []int
	for _, h := range candidates {
		if g := s.equivalent.group[h]; g >= 0 {
			groups[g] = append(groups[g], h)
		} else {
			list = append(list, h)
		}
	}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		hosts := groups[g]
		slices.SortStableFunc(hosts, func(a, b int) int { return cmp.Compare(s.minBandwidth(a), s.minBandwidth(b)) })
		list = append(list, hosts[:min(len(hosts), len(s.host))]...)
	}
	return list
}

// minBandwidth is the bandwidth left on the links of a host, in the direction with less.
func (s *search) minBandwidth(host int) int64 {
	least := int64(1<<63 - 1)
	for _, dir := range vnet.Directions {
		sum := int64(0)
		for _, a := range s.graph.Leaving(host) {
			sum += s.residual.least(s.residual.arc(a ^ graph.Arc(dir)))
		}
		least = min(least, sum)
	}
	return least
}

// nextRound begins a list of hosts.
func (t *equivalence) nextRound() { t.round++ }

// firstOfGroup lists a host; false: an equivalent one was listed in this round.
func (t *equivalence) firstOfGroup(host int) bool {
	g := t.group[host]
	if g < 0 {
		return true
	}
	was := t.seen[g]
	t.seen[g] = t.round
	return was != t.round
}
