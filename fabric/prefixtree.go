package fabric

import "slices"

// PrefixTreeLists are the relay lists of the rule of Nakamura (thesis, section
// 5.5.2, algorithm 2) for paths between the same two switches: in the prefix
// tree of the paths, a switch is a relay where its parent branches. They do not
// pin a path where the fabric has equal ones; Follow tells which do. They are
// here for comparison.
func PrefixTreeLists(paths []Path) []List {
	lists := make([]List, len(paths))
	for i, p := range paths {
		for at := 1; at < len(p.Nodes)-1; at++ {
			if branches(paths, p.Nodes[:at]) {
				lists[i] = append(lists[i], Relay{p.Nodes[at], None})
			}
		}
	}
	return lists
}

// branches says whether paths with a beginning go on to several switches.
func branches(paths []Path, beginning []int) bool {
	next := -1
	for _, p := range paths {
		if len(p.Nodes) <= len(beginning) || !slices.Equal(p.Nodes[:len(beginning)], beginning) {
			continue
		}
		n := p.Nodes[len(beginning)]
		if next >= 0 && n != next {
			return true
		}
		next = n
	}
	return false
}
