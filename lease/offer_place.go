package lease

import (
	"slices"
	"time"

	"sublet/vnet"
)

// mostNodes bounds how many nodes are tried in another place one by one.
const mostNodes = 16

// elsewhere finds another way out, exit or place to join, or another site (or
// host) for one of the nodes that bind or, if that does not suffice, for all that
// have a stated one.
func (s *search) elsewhere(r vnet.Request) (vnet.Request, bool) {
	if moved, ok := s.anotherWay(r); ok {
		return moved, true
	}
	some, all := s.pinned(r)
	for _, name := range some[:min(len(some), mostNodes)] {
		if moved, ok := s.move(r, []string{name}); ok {
			return moved, true
		}
	}
	for _, names := range [][]string{some, all} {
		if len(names) < 2 {
			continue // was tried
		}
		if moved, ok := s.move(r, names); ok {
			return s.fewer(r, moved, names), true
		}
	}
	return r, false
}

// fewer takes nodes back to where they were asked for, one by one, if the
// others can go elsewhere without them.
func (s *search) fewer(r, moved vnet.Request, names []string) vnet.Request {
	for _, name := range names {
		rest := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
		if m, ok := s.move(r, rest); ok {
			moved, names = m, rest
		}
	}
	return moved
}

// pinned lists nodes with a stated place: those that found no host and the
// ends of links that found no path, and all of them.
func (s *search) pinned(r vnet.Request) (some, all []string) {
	binding := setOf(s.why.Nodes)
	union := r.Union()
	for _, link := range union.Links {
		if slices.Contains(s.why.Links, link.Name) {
			binding[link.Ends[0]], binding[link.Ends[1]] = true, true
		}
	}
	for _, n := range union.Placed() {
		if n.Site == "" && n.Host == "" {
			continue
		}
		all = append(all, n.Name)
		if binding[n.Name] {
			some = append(some, n.Name)
		}
	}
	if len(some) == 0 {
		return all, all
	}
	return some, all
}

// move embeds a request with some nodes free to go anywhere, and states where
// they went.
func (s *search) move(r vnet.Request, names []string) (vnet.Request, bool) {
	if len(names) == 0 {
		return r, false
	}
	named := setOf(names)
	free := rewrite(r)
	eachPlace(&free, func(name string, site *string, host *vnet.HostID) {
		if named[name] {
			*site, *host = "", ""
		}
	})
	mapping, ok := s.embed(free)
	if !ok {
		return r, false
	}
	moved := rewrite(r)
	eachPlace(&moved, func(name string, site *string, host *vnet.HostID) {
		if named[name] {
			s.restate(site, host, mapping.Nodes[name])
		}
	})
	changes, _ := placeChanges(s.now, r, moved)
	return moved, len(changes) > 0 && s.fits(moved)
}

// restate writes a node's new place the way its old one was written.
func (s *search) restate(site *string, host *vnet.HostID, to vnet.HostID) {
	h, _ := s.view.sub.HostOf(string(to))
	if *site != "" {
		*site = h.Site
	}
	if *host != "" {
		*host = to
	}
}

// placeChanges names the places that differ, and what that costs.
func placeChanges(_ time.Time, asked, moved vnet.Request) (changes []vnet.Change, cost float64) {
	after := moved.Union().Placed()
	for i, n := range asked.Union().Placed() {
		m := after[i]
		if n.Site != m.Site {
			to := m.Site
			if to == "" {
				to = "any"
			}
			changes = append(changes, vnet.Change{What: "site of " + n.Name, From: n.Site, To: to})
		}
		switch {
		case n.Host != m.Host:
			changes = append(changes, vnet.Change{What: "host of " + n.Name, From: string(n.Host), To: string(m.Host)})
			cost += 2
		case n.Site != m.Site:
			cost += 1 / float64(len(after))
		}
	}
	return changes, cost
}
