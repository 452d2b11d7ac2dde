package lease

import (
	"cmp"
	"slices"
	"time"

	"sublet/embed"
	"sublet/vnet"
)

// search looks for requests near one that was refused which would be admitted.
type search struct {
	view     *View
	now      time.Time
	asked    vnet.Request
	why      *embed.Infeasible
	freeAxes []vnet.Axis // along which embed takes a request as far as they go
	each     int         // tries that looking along one axis may take
	left     int         // tries left of them
}

// offer is a request near the one refused.
type offer struct {
	vnet.Offer
	// cost makes offers of different kinds comparable, in durations of the
	// window: the delay of a start, how much longer moving the same volume
	// takes in a shorter window or at lower minima, the growth of a latency
	// bound, the part of the nodes that change site; a stated host given up
	// counts as two.
	cost float64
}

// reject turns a refusal into words, with the nearest offer there is along
// each axis. Every offer has been embedded: nothing is guessed.
func (v *View) reject(asked vnet.Request, why *embed.Infeasible) *vnet.Rejection {
	s := v.search(asked, why)
	var offers []offer
	for i, axis := range vnet.Axes {
		if asked.Negotiates(axis) {
			done := v.effort.Part(len(vnet.Axes) - i)
			offers = s.offer(offers, axis)
			done()
		}
	}
	if len(offers) == 0 {
		offers = s.several()
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(a.cost, b.cost) })
	refusal := &vnet.Rejection{Reasons: why.Reasons, Bound: boundOf(why)}
	for _, o := range offers {
		refusal.Offers = append(refusal.Offers, o.Offer)
	}
	refusal.Undecided = v.effort.Short()
	if len(offers) == 0 {
		if !refusal.Undecided {
			refusal.Never = s.never()
		}
		return refusal
	}
	refusal.Offer, refusal.Changes = &refusal.Offers[0].Request, refusal.Offers[0].Changes
	return refusal
}

// Tries of a refusal along one axis: enough for every start of a small book
// and for bisection to the bit, few enough for a refusal by a large substrate
// to take no more than some tens of admissions.
const (
	mostTries  = 1024
	leastTries = 12
	work       = 20_000 // hosts times nodes and links that are looked at
)

func (v *View) search(asked vnet.Request, why *embed.Infeasible) *search {
	union := asked.Union()
	size := (len(v.sub.Hosts) + 1) * (len(union.All()) + len(union.Links) + 1)
	return &search{view: v, now: v.now, asked: asked, why: why, each: min(max(work/size, leastTries), mostTries)}
}

// offer adds the best request along some axes, if there is one.
func (s *search) offer(offers []offer, axes ...vnet.Axis) []offer {
	r := s.asked
	for i, axis := range axes {
		s.freeAxes, s.left = axes[i+1:], s.each
		nearer, ok := s.along(axis, r)
		if !ok {
			return offers
		}
		r = nearer
	}
	s.freeAxes, s.left = nil, 1
	changes, cost := differences(s.now, s.asked, r)
	if len(changes) == 0 {
		return offers
	}
	mapping, ok := s.embed(r)
	if !ok {
		return offers
	}
	account := r.Quote(s.view.pricesAt(mapping))
	return append(offers, offer{vnet.Offer{Axes: slices.Clone(axes), Request: r, Changes: changes, Account: account}, cost})
}

// along finds the nearest variant of a request along one axis.
func (s *search) along(axis vnet.Axis, r vnet.Request) (vnet.Request, bool) {
	switch axis {
	case vnet.AxisStart:
		return s.later(r, time.Time{})
	case vnet.AxisDuration:
		return s.shorter(r)
	case vnet.AxisMinimum:
		return s.lower(r)
	case vnet.AxisLatency:
		return s.slower(r)
	}
	return s.elsewhere(r)
}

// embed tries a request as Admit would, relaxed along the free axes.
func (s *search) embed(r vnet.Request) (vnet.Mapping, bool) {
	if s.left--; s.left < 0 || s.view.effort.Over() {
		return vnet.Mapping{}, false
	}
	r = s.relaxed(r)
	m, err := s.view.embed(s.view.calendar, r, windowOf(s.now, r))
	return m, err == nil
}

func (s *search) fits(r vnet.Request) bool {
	_, ok := s.embed(r)
	return ok
}

// differences names in what a request differs from the one asked, and adds up
// what that costs.
func differences(now time.Time, asked, r vnet.Request) (changes []vnet.Change, cost float64) {
	for _, differ := range []func(time.Time, vnet.Request, vnet.Request) ([]vnet.Change, float64){
		startChanges, durationChanges, minimaChanges, latencyChanges, placeChanges, wayChanges,
	} {
		more, dearer := differ(now, asked, r)
		changes, cost = append(changes, more...), cost+dearer
	}
	return changes, cost
}

// boundOf is what found no place.
func boundOf(why *embed.Infeasible) vnet.Bound {
	switch {
	case len(why.Nodes) > 0:
		return vnet.BoundHost
	case len(why.Links) > 0:
		return vnet.BoundLink
	}
	return ""
}
