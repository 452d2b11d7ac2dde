package embed

import (
	"math"

	"sublet/embed/graph"
)

// press is settle, but where a link finds no way, or none that is cheap enough,
// other links of the network make way for it and take another, if the search
// presses. relent undoes it.
func (s *search) press(v, host int) bool {
	s.weighed += 20
	s.occupy(v, host)
	mark := len(s.branching.moved)
	for _, l := range s.problem.nodes[v].links {
		if s.host[s.problem.links[l].far(v)] < 0 || s.route(l) && s.lowest() <= s.bound {
			continue
		}
		if s.unroute(l); !s.branching.presses || !s.force(l) {
			s.relent(v, mark)
			return false
		}
	}
	return true
}

// relent takes a node out, and gives links that made way since a mark their
// former walks back.
func (s *search) relent(v, mark int) {
	s.unsettle(v)
	b := &s.branching
	for i := len(b.moved) - 1; i >= mark; i-- {
		if l := &s.problem.links[b.moved[i].link]; l.ends[0] != v && l.ends[1] != v {
			s.unroute(b.moved[i].link)
			s.reserve(b.moved[i].link, b.moved[i].walk)
		}
	}
	b.moved = b.moved[:mark]
}

// force gives a link the walk it would have if it came first, and the links
// that fill it others; false, and nothing is changed: these find none, or all
// of it costs too much.
func (s *search) force(l int) bool {
	v := &s.problem.links[l]
	from, to := s.host[v.ends[0]], s.host[v.ends[1]]
	if from == to || v.bound > 0 {
		return false
	}
	s.before.Need = [2][]int64{v.min[0], v.min[1]}
	s.least.Seek(to)
	s.least.Grow(from, math.MaxInt64, &s.before)
	walk, ok := s.least.Walk(to)
	if !ok || !s.graph.Pinned(walk) {
		return false
	}
	mark := len(s.branching.moved)
	s.clearWay(l, walk)
	if s.reserve(l, walk); s.reroute(mark) {
		return true
	}
	s.unroute(l)
	for _, m := range s.branching.moved[mark:] {
		s.unroute(m.link)
	}
	for _, m := range s.branching.moved[mark:] {
		s.reserve(m.link, m.walk)
	}
	s.branching.moved = s.branching.moved[:mark]
	return false
}

// clearWay takes the links out of a walk without which a link fits.
func (s *search) clearWay(l int, walk []graph.Arc) {
	for _, a := range walk {
		for other := 0; other < len(s.walks) && !s.fitsOn(l, a); other++ {
			if other != l && passes(s.walks[other], a) {
				s.branching.moved = append(s.branching.moved, moved{node: -1, link: other, walk: s.walks[other]})
				s.unroute(other)
			}
		}
	}
}

// fitsOn says whether an arc has what a link needs over it.
func (s *search) fitsOn(l int, a graph.Arc) bool {
	v := &s.problem.links[l]
	return s.left.fits(s.left.arc(a), v.min[0]) && s.left.fits(s.left.arc(a.Opposite()), v.min[1])
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

// reroute finds new walks for the links that made way since a mark.
func (s *search) reroute(mark int) bool {
	for _, m := range s.branching.moved[mark:] {
		if !s.route(m.link) || s.lowest() > s.bound {
			return false
		}
	}
	return true
}
