package fabric

import (
	"cmp"
	"slices"
)

// Path is a loopless walk: its switches, and the links between them.
type Path struct {
	Nodes []int
	Links []int // Links[i] joins Nodes[i] and Nodes[i+1]
	Cost  int
}

// compare orders paths by cost, then hops, then the numbers of their switches
// and links.
func (p Path) compare(q Path) int {
	return cmp.Or(cmp.Compare(p.Cost, q.Cost), cmp.Compare(len(p.Nodes), len(q.Nodes)), slices.Compare(p.Nodes, q.Nodes), slices.Compare(p.Links, q.Links))
}

// Shortest lists the k shortest loopless paths (Yen 1971, with Lawler's
// improvement: a path's deviations start where it left its parent), fewer if
// there are not so many. Searches are led by the exact distances to the target
// without the forbidden parts, so they look at little besides the path they
// find.
func (f *Fabric) Shortest(from, to, k int) []Path {
	s := search{fabric: f, goal: f.distancesTo(to), to: to, limit: unreachable, parent: make([]step, f.Len()), best: make([]int32, f.Len()), epoch: make([]int32, f.Len()), closed: make([]int32, f.Len())}
	if from == to || k <= 0 || s.goal.dist[from] == unreachable {
		return nil
	}
	var found []Path
	candidates := s.deviate(nil, nil, from, 0)
	for len(found) < k && len(candidates) > 0 {
		i := least(candidates)
		next := candidates[i]
		candidates = slices.Delete(candidates, i, i+1)
		found = append(found, next.Path)
		for at := next.left; at < len(next.Links); at++ {
			s.bound(candidates, k-len(found))
			candidates = append(candidates, s.deviate(found, &next.Path, next.Nodes[at], at)...)
		}
		candidates = s.prune(candidates, k-len(found))
	}
	return found
}

// candidate is a path, and the index of the switch where it left its parent.
type candidate struct {
	Path
	left int
}

func least(all []candidate) int {
	best := 0
	for i := range all {
		if all[i].compare(all[best].Path) < 0 {
			best = i
		}
	}
	return best
}

// prune keeps no more candidates than can still be chosen.
func (s *search) prune(all []candidate, most int) []candidate {
	if len(all) <= 4*most+8 {
		return all
	}
	slices.SortFunc(all, func(a, b candidate) int { return a.compare(b.Path) })
	return all[:most]
}

// bound makes searches leave out what costs more than as many candidates as can
// still be chosen.
func (s *search) bound(all []candidate, most int) {
	if s.limit = unreachable; len(all) < most || most == 0 {
		return
	}
	costs := make([]int, len(all))
	for i := range all {
		costs[i] = all[i].Cost
	}
	slices.Sort(costs)
	s.limit = int32(costs[most-1])
}

// search is the working space of Shortest.
type search struct {
	fabric *Fabric
	goal   *distances
	to     int
	parent []step
	best   []int32
	epoch  []int32 // of best and parent
	closed []int32 // epoch in which a switch is on the fixed part, or done
	now    int32
	limit  int32 // of a path's cost
	spent  int32 // of the fixed part
	queue  queue
	banned []Arc
}

// step is how a search reached a switch.
type step struct {
	from int32
	arc  Arc
}

// deviate finds the best path that shares the first links of a path up to the
// switch spur, which is its at-th, and then goes as no path found before does:
// at most one.
func (s *search) deviate(found []Path, path *Path, spur, at int) []candidate {
	s.now++
	s.queue, s.banned, s.spent = s.queue[:0], s.banned[:0], 0
	if path != nil {
		s.spent = int32(s.prefixCost(*path, at))
		for _, n := range path.Nodes[:at] {
			s.closed[n] = s.now
		}
		s.ban(found, path, at)
	}
	if !s.run(spur) {
		return nil
	}
	return []candidate{{s.collect(path, spur, at), at}}
}

// ban forbids the links by which paths with the same beginning went on.
func (s *search) ban(found []Path, path *Path, at int) {
	for _, p := range found {
		if len(p.Links) > at && p.Nodes[at] == path.Nodes[at] && slices.Equal(p.Links[:at], path.Links[:at]) {
			s.banned = append(s.banned, Arc{To: p.Nodes[at+1], Link: p.Links[at]})
		}
	}
}

func (s *search) isBanned(a Arc) bool {
	for _, b := range s.banned {
		if a.To == b.To && a.Link == b.Link {
			return true
		}
	}
	return false
}

// run searches from spur to the target (A*).
func (s *search) run(spur int) bool {
	s.best[spur], s.epoch[spur] = 0, s.now
	s.queue.push(item{s.goal.dist[spur], int32(spur)})
	for len(s.queue) > 0 {
		at := int(s.queue.pop().node)
		if at == s.to {
			return true
		}
		if s.closed[at] == s.now {
			continue
		}
		s.closed[at] = s.now
		for _, a := range s.fabric.leaving[at] {
			if s.goal.dist[a.To] == unreachable || s.closed[a.To] == s.now || at == spur && s.isBanned(a) {
				continue
			}
			s.reach(at, a)
		}
	}
	return false
}

func (s *search) reach(at int, a Arc) {
	cost := s.best[at] + int32(a.Cost)
	switch {
	case s.spent+cost > s.limit-s.goal.dist[a.To]:
		return // more than what is there already
	case s.epoch[a.To] != s.now || cost < s.best[a.To]:
	case cost == s.best[a.To] && s.after(s.parent[a.To], step{int32(at), a}):
		s.parent[a.To] = step{int32(at), a}
		return
	default:
		return
	}
	s.best[a.To], s.epoch[a.To], s.parent[a.To] = cost, s.now, step{int32(at), a}
	s.queue.push(item{cost + s.goal.dist[a.To], int32(a.To)})
}

// after says whether the path by one step has larger numbers than an equally
// long one by another.
func (s *search) after(p, q step) bool {
	var a, b [16]int32
	x, y := s.trail(p, a[:0]), s.trail(q, b[:0])
	if order := slices.Compare(x, y); order != 0 || p.from != q.from {
		return order > 0
	}
	return p.arc.Link > q.arc.Link
}

// trail is the switches up to a step, from the spur on.
func (s *search) trail(p step, nodes []int32) []int32 {
	for at := p.from; ; at = s.parent[at].from {
		nodes = append(nodes, at)
		if s.best[at] == 0 {
			slices.Reverse(nodes)
			return nodes
		}
	}
}

// collect is the fixed part up to the spur and what was found behind it.
func (s *search) collect(path *Path, spur, at int) Path {
	var p Path
	if path != nil {
		p.Nodes, p.Links = slices.Clone(path.Nodes[:at]), slices.Clone(path.Links[:at])
	}
	p.Nodes = append(p.Nodes, spur)
	length := len(p.Nodes)
	for n := s.to; n != spur; n = int(s.parent[n].from) {
		p.Nodes, p.Links = append(p.Nodes, n), append(p.Links, s.parent[n].arc.Link)
	}
	slices.Reverse(p.Nodes[length:])
	slices.Reverse(p.Links[at:])
	p.Cost = int(s.best[s.to]) + s.prefixCost(p, at)
	return p
}

// prefixCost of a path's first links.
func (s *search) prefixCost(p Path, links int) int {
	cost := 0
	for i := range links {
		for _, a := range s.fabric.leaving[p.Nodes[i]] {
			if a.To == p.Nodes[i+1] && a.Link == p.Links[i] {
				cost += a.Cost
				break
			}
		}
	}
	return cost
}
