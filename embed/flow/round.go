package flow

import (
	"cmp"
	"math"
	"slices"

	"sublet/embed/graph"
	"sublet/vnet"
)

// rounding turns the program's amounts into whole units that fit exactly.
type rounding struct {
	*program
	taken  map[rowKey]int64
	shares [][]Share // by link
}

// round gives each link whole units: first what its amounts are rounded down,
// largest needs first, then the units left over one path after another. False:
// not all of them find room.
func (p *program) round() ([][]Share, bool) {
	r := &rounding{program: p, taken: map[rowKey]int64{}, shares: make([][]Share, len(p.links))}
	byLink := make([][]Share, len(p.links))
	for i, amount := range p.amounts() {
		if units := int(math.Floor(amount*vnet.ShareUnits + 1e-6)); units > 0 {
			l := p.paths[i].link
			byLink[l] = append(byLink[l], Share{p.paths[i].walk, units})
		}
	}
	order := make([]int, len(p.links))
	for l := range order {
		order[l] = l
		// The most of a link on the path that carries most of it.
		slices.SortStableFunc(byLink[l], func(a, b Share) int { return cmp.Compare(b.Units, a.Units) })
		byLink[l] = byLink[l][:min(len(byLink[l]), p.links[l].Paths)]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.links[b].Cost, p.links[a].Cost) })
	for _, l := range order {
		for _, s := range byLink[l] {
			r.give(l, s.Walk, s.Units)
		}
	}
	for _, l := range order {
		if !r.complete(l) {
			return nil, false
		}
	}
	return r.shares, true
}

// give adds to a walk's share of a link as many of so many units as fit.
func (r *rounding) give(l int, walk []graph.Arc, units int) int {
	i := slices.IndexFunc(r.shares[l], func(s Share) bool { return slices.Equal(s.Walk, walk) })
	has := 0
	if i >= 0 {
		has = r.shares[l][i].Units
	}
	fit := r.unitsThatFit(l, walk, has, units)
	if fit == 0 {
		return 0
	}
	r.take(l, walk, has, -1)
	r.take(l, walk, has+fit, 1)
	if i < 0 {
		r.shares[l] = append(r.shares[l], Share{walk, fit})
	} else {
		r.shares[l][i].Units += fit
	}
	return fit
}

// unitsThatFit is how many of so many units fit on a walk that has some already.
func (r *rounding) unitsThatFit(l int, walk []graph.Arc, has, units int) int {
	for low, high := 0, units; ; {
		if r.fits(l, walk, has, has+high) {
			return high
		}
		if high-low <= 1 {
			return low
		}
		if middle := (low + high) / 2; r.fits(l, walk, has, has+middle) {
			low = middle
		} else {
			high = middle
		}
	}
}

// fits says whether a walk of a link can have so many units instead of those
// it has.
func (r *rounding) fits(l int, walk []graph.Arc, has, units int) bool {
	for _, a := range walk {
		for dir, need := range r.links[l].Need {
			arc := a ^ graph.Arc(dir)
			left := r.Left(arc)
			for s, n := range need {
				if n > 0 && left[s]-r.taken[rowKey{arc, s}]+least(n, has) < least(n, units) {
					return false
				}
			}
		}
	}
	return true
}

// take adds what a share uses, or takes it away.
func (r *rounding) take(l int, walk []graph.Arc, units int, sign int64) {
	if units == 0 {
		return
	}
	for _, a := range walk {
		for dir, need := range r.links[l].Need {
			for s, n := range need {
				r.taken[rowKey{a ^ graph.Arc(dir), s}] += sign * least(n, units)
			}
		}
	}
}

// complete gives a link's missing units to its paths, then to others that the
// program knows, then to new ones, while it may have more.
func (r *rounding) complete(l int) bool {
	missing := vnet.ShareUnits
	for _, s := range r.shares[l] {
		missing -= s.Units
	}
	for _, s := range slices.Clone(r.shares[l]) {
		missing -= r.give(l, s.Walk, missing)
	}
	for missing > 0 && len(r.shares[l]) < r.links[l].Paths {
		walk, ok := r.detour(l, missing)
		if !ok {
			break
		}
		missing -= r.give(l, walk, missing)
	}
	return missing == 0
}

// detour finds a walk for the missing units of a link: the shortest that holds
// them all or, if the link may have still more paths, at least a part of them
// so large that these paths could hold all.
func (r *rounding) detour(l, missing int) ([]graph.Arc, bool) {
	link := r.links[l]
	more := link.Paths - len(r.shares[l])
	for _, units := range []int{missing, (missing + more - 1) / more} {
		walk, _, ok := r.Graph.Cheapest(link.From, link.To, math.Inf(1), graph.Fares{Bound: r.bound[l], Price: func(a graph.Arc) float64 {
			if r.fits(l, []graph.Arc{a}, 0, units) {
				return 1
			}
			return math.Inf(1)
		}})
		if ok && !slices.ContainsFunc(r.shares[l], func(s Share) bool { return slices.Equal(s.Walk, walk) }) {
			return walk, true
		}
	}
	return nil, false
}
