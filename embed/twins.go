package embed

import (
	"cmp"
	"maps"
	"slices"

	"sublet/embed/graph"
	"sublet/vnet"
)

// twins groups hosts that have one link each, to the same neighbour: for a
// node that fits on several of them they are as good as one, and only how much
// it leaves unused tells them apart. So a node is tried on one of each group,
// the one with the least bandwidth that suffices, and the wide ones are kept
// for the nodes that need them.
type twins struct {
	group []int // by host: its neighbour; -1: it has no twin
	any   bool  // there is a group
	seen  []int // by neighbour: the round in which a twin was listed
	round int
}

// pair finds the groups, where hosts of a group cost the same for every link.
func (s *search) pair() {
	t := &s.twins
	t.group, t.seen = make([]int, len(s.left.sub.Hosts)), make([]int, len(s.left.sub.Hosts))
	even := s.even && s.problem.apart
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

// shortlist is what of a node's candidates can be of use: of each group as many
// as the network has nodes, the tightest first.
func (s *search) shortlist(candidates []int) []int {
	if !s.twins.any {
		return candidates
	}
	groups := make(map[int][]int)
	var list []int
	for _, h := range candidates {
		if g := s.twins.group[h]; g >= 0 {
			groups[g] = append(groups[g], h)
		} else {
			list = append(list, h)
		}
	}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		hosts := groups[g]
		slices.SortStableFunc(hosts, func(a, b int) int { return cmp.Compare(s.width(a), s.width(b)) })
		list = append(list, hosts[:min(len(hosts), len(s.host))]...)
	}
	return list
}

// width is what the links of a host have left in the direction that has less.
func (s *search) width(host int) int64 {
	least := int64(1<<63 - 1)
	for _, dir := range vnet.Directions {
		sum := int64(0)
		for _, a := range s.graph.Leaving(host) {
			sum += s.left.least(s.left.arc(a ^ graph.Arc(dir)))
		}
		least = min(least, sum)
	}
	return least
}

// fresh begins a list of hosts.
func (t *twins) fresh() { t.round++ }

// first says whether no twin of a host was listed before it, and lists it.
func (t *twins) first(host int) bool {
	g := t.group[host]
	if g < 0 {
		return true
	}
	was := t.seen[g]
	t.seen[g] = t.round
	return was != t.round
}
