package lease

import (
	"slices"

	"sublet/vnet"
)

// mostNodes bounds how many nodes are tried in another place one by one.
const mostNodes = 16

// otherPlaces looks for another site (or host) for one of the nodes that
// bind, then for all of them together.
func (s *search) otherPlaces() {
	pinned := s.pinned()
	for _, name := range pinned[:min(len(pinned), mostNodes)] {
		if s.move([]string{name}) {
			return
		}
	}
	if len(pinned) > 1 {
		s.move(pinned)
	}
}

// pinned lists nodes with a stated place: those that found no host and the
// ends of links that found no path or, if none of them is pinned, all.
func (s *search) pinned() []string {
	binding := setOf(s.why.Nodes)
	for _, link := range s.asked.Union().Links {
		if slices.Contains(s.why.Links, link.Name) {
			binding[link.Ends[0]], binding[link.Ends[1]] = true, true
		}
	}
	var some, all []string
	for _, n := range s.asked.Union().All() {
		if n.Site == "" && n.Host == "" {
			continue
		}
		all = append(all, n.Name)
		if binding[n.Name] {
			some = append(some, n.Name)
		}
	}
	if len(some) > 0 {
		return some
	}
	return all
}

// move embeds the request with some nodes free to go anywhere, states where
// they went and keeps that as an offer if it embeds too.
func (s *search) move(names []string) bool {
	named := setOf(names)
	free := rewrite(s.asked)
	eachNode(&free, func(n *vnet.VirtualNode) {
		if named[n.Name] {
			n.Site, n.Host = "", ""
		}
	})
	mapping, ok := s.embed(free)
	if !ok {
		return false
	}
	moved := rewrite(s.asked)
	eachNode(&moved, func(n *vnet.VirtualNode) {
		if named[n.Name] {
			s.restate(n, mapping.Nodes[n.Name])
		}
	})
	changes, cost := placeChanges(s.asked, moved)
	if len(changes) == 0 || s.tooDear(cost) || !s.fits(moved) {
		return false
	}
	s.take(offer{moved, changes, cost})
	return true
}

// restate writes a node's new place the way its old one was written.
func (s *search) restate(n *vnet.VirtualNode, host vnet.HostID) {
	h, _ := s.book.sub.HostOf(string(host))
	if n.Site != "" {
		n.Site = h.Site
	}
	if n.Host != "" {
		n.Host = host
	}
}

// placeChanges names the places that differ, and what that costs.
func placeChanges(asked, moved vnet.Request) (changes []vnet.Change, cost float64) {
	after := moved.Union().All()
	for i, n := range asked.Union().All() {
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
