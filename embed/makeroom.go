package embed

import (
	"math"

	"sublet/embed/graph"
)

// makeRoom is placeNode, but where a link finds no path, or none that is cheap
// enough, other links of the network are moved to other paths, if the search
// allows that. undo takes it back.
func (s *search) makeRoom(v, host int) bool {
	s.otherWork += 20
	s.occupy(v, host)
	mark := len(s.branch.displaced)
	for _, l := range s.problem.nodes[v].links {
		if s.host[s.problem.links[l].far(v)] < 0 || s.route(l) && s.lowest() <= s.costBound {
			continue
		}
		if s.unroute(l); !s.branch.makesRoom || !s.displace(l) {
			s.undo(v, mark)
			return false
		}
	}
	return true
}

// undo takes a node out, and gives links that were displaced since a mark their
// former walks back.
func (s *search) undo(v, mark int) {
	s.removeNode(v)
	b := &s.branch
	for i := len(b.displaced) - 1; i >= mark; i-- {
		if l := &s.problem.links[b.displaced[i].link]; l.ends[0] != v && l.ends[1] != v {
			s.unroute(b.displaced[i].link)
			s.reserve(b.displaced[i].link, b.displaced[i].walk)
		}
	}
	b.displaced = b.displaced[:mark]
}

// displace gives a link the walk it would have if it were routed first, and other
// walks to the links that fill that one. False, and nothing is changed: these
// find none, or the total costs too much.
func (s *search) displace(l int) bool {
	v := &s.problem.links[l]
	from, to := s.host[v.ends[0]], s.host[v.ends[1]]
	if from == to || v.bound > 0 {
		return false
	}
	s.initial.Need = [2][]int64{v.min[0], v.min[1]}
	s.shortest.Seek(to)
	s.shortest.Grow(from, math.MaxInt64, &s.initial)
	walk, ok := s.shortest.Walk(to)
	if !ok || !s.graph.Pinned(walk) {
		return false
	}
	mark := len(s.branch.displaced)
	s.displaceFrom(l, walk)
	if s.reserve(l, walk); s.reroute(mark) {
		return true
	}
	s.unroute(l)
	for _, m := range s.branch.displaced[mark:] {
		s.unroute(m.link)
	}
	for _, m := range s.branch.displaced[mark:] {
		s.reserve(m.link, m.walk)
	}
	s.branch.displaced = s.branch.displaced[:mark]
	return false
}

// displaceFrom takes links out of a walk until another link fits on it.
func (s *search) displaceFrom(l int, walk []graph.Arc) {
	for _, a := range walk {
		for other := 0; other < len(s.walks) && !s.fitsOn(l, a); other++ {
			if other != l && passes(s.walks[other], a) {
				s.branch.displaced = append(s.branch.displaced, removal{node: -1, link: other, walk: s.walks[other]})
				s.unroute(other)
			}
		}
	}
}

// fitsOn says whether an arc has what a link needs over it.
func (s *search) fitsOn(l int, a graph.Arc) bool {
	v := &s.problem.links[l]
	return s.residual.fits(s.residual.arc(a), v.min[0]) && s.residual.fits(s.residual.arc(a.Opposite()), v.min[1])
}

// passes says whether a walk takes an arc's link, in either direction.
func passes(walk []graph.Arc, a graph.Arc) bool {
	for _, b := range walk {
		if a.Link() == b.Link() {
			return true
		}
	}
	return false
}

// reroute finds new walks for the links that were displaced since a mark.
func (s *search) reroute(mark int) bool {
	for _, m := range s.branch.displaced[mark:] {
		if !s.route(m.link) || s.lowest() > s.costBound {
			return false
		}
	}
	return true
}
