package lease

import (
	"time"

	"sublet/vnet"
)

// eachWay calls f for every place where a way out, exit or place to join is
// written, with what it is and whose.
func eachWay(r *vnet.Request, f func(kind, of string, name *string)) {
	for _, t := range topologies(r) {
		for i := range t.Nodes {
			if n := &t.Nodes[i]; n.Join != "" {
				f(placeToJoin, n.Name, &n.Join)
			}
		}
		for i := range t.Routers {
			if n := &t.Routers[i]; n.NAT != "" {
				f(wayOut, n.Name, &n.NAT)
			}
		}
		for i := range t.Switches {
			if s := &t.Switches[i]; s.Access != "" {
				f(exit, s.Name, &s.Access)
			}
		}
	}
}

// What leads out of the substrate, in words.
const (
	wayOut      = "way out"
	exit        = "exit"
	placeToJoin = "place to join"
)

// offeredWays are the names of all that the substrate has of a kind.
func offeredWays(sub vnet.Substrate, kind string) (names []string) {
	switch kind {
	case wayOut:
		for _, n := range sub.NAT {
			names = append(names, n.Name)
		}
	case exit:
		for _, x := range sub.Exits {
			names = append(names, x.Name)
		}
	case placeToJoin:
		for _, j := range sub.Joins {
			names = append(names, j.Name)
		}
	}
	return names
}

// anotherWay finds another of its kind for all who have one way out, exit or place
// to join.
func (s *search) anotherWay(r vnet.Request) (vnet.Request, bool) {
	type way struct{ kind, name string }
	seen := make(map[way]bool)
	var used []way
	asked := rewrite(r)
	eachWay(&asked, func(kind, _ string, name *string) {
		if w := (way{kind, *name}); !seen[w] {
			seen[w] = true
			used = append(used, w)
		}
	})
	for _, from := range used {
		for _, to := range offeredWays(s.view.working, from.kind) {
			if to == from.name {
				continue
			}
			moved := rewrite(r)
			eachWay(&moved, func(kind, _ string, name *string) {
				if (way{kind, *name}) == from {
					*name = to
				}
			})
			if s.fits(moved) {
				return moved, true
			}
		}
	}
	return r, false
}

// wayChanges names the ways out, exits and places to join that differ: each costs
// as much as a host.
func wayChanges(_ time.Time, asked, moved vnet.Request) (changes []vnet.Change, cost float64) {
	asked, moved = rewrite(asked), rewrite(moved)
	var before []string
	eachWay(&asked, func(_, _ string, name *string) { before = append(before, *name) })
	i := 0
	eachWay(&moved, func(kind, of string, name *string) {
		if was := before[i]; was != *name {
			changes = append(changes, vnet.Change{What: kind + " of " + of, From: was, To: *name})
			cost += 2
		}
		i++
	})
	return changes, cost
}
