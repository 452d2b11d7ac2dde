package lease

import (
	"errors"
	"slices"
	"strings"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/vnet"
)

// several looks for an offer along as few axes at once as possible, when none
// suffices alone: the axes are relaxed together, and then tightened one by one.
func (s *search) several() []offer {
	for _, axes := range s.sets() {
		s.freeAxes, s.left = axes, 1
		if !s.fits(s.asked) {
			continue
		}
		if offers := s.offer(nil, axes...); len(offers) > 0 {
			return offers
		}
	}
	return nil
}

// tightenOrder is the order in which axes are tightened: places first, because
// what they allow decides about the rest, and what is measured finest last.
var tightenOrder = []vnet.Axis{vnet.AxisSite, vnet.AxisLatency, vnet.AxisStart, vnet.AxisDuration, vnet.AxisMinimum}

// sets lists the sets of two and more negotiable axes, smaller ones first.
func (s *search) sets() [][]vnet.Axis {
	var sets [][]vnet.Axis
	for bits := range 1 << len(tightenOrder) {
		var set []vnet.Axis
		for i, axis := range tightenOrder {
			if bits>>i&1 == 1 && s.asked.Negotiates(axis) {
				set = append(set, axis)
			}
		}
		if len(set) > 1 && !slices.ContainsFunc(sets, func(other []vnet.Axis) bool { return slices.Equal(set, other) }) {
			sets = append(sets, set)
		}
	}
	slices.SortStableFunc(sets, func(a, b []vnet.Axis) int { return len(a) - len(b) })
	return sets
}

// relaxed takes a request as far along the free axes as each goes.
func (s *search) relaxed(r vnet.Request) vnet.Request {
	for _, axis := range s.freeAxes {
		r = s.relax(axis, r)
	}
	return r
}

func (s *search) relax(axis vnet.Axis, r vnet.Request) vnet.Request {
	switch axis {
	case vnet.AxisStart:
		return s.last(r)
	case vnet.AxisDuration:
		return shortest(r)
	case vnet.AxisMinimum:
		all := demanding(r)
		low, whole := scales(r, all)
		return scaled(r, all, ratio{low, max(whole, 1)})
	}
	r = rewrite(r)
	if axis == vnet.AxisLatency {
		eachLink(&r, func(l *vnet.VirtualLink) { l.Latency = 0 })
		return r
	}
	eachPlace(&r, func(_ string, site *string, host *vnet.HostID) { *site, *host = "", "" })
	return r
}

// never says why there is no offer: because nothing like it fits even on the
// empty substrate, or because what is booked has no end.
func (s *search) never() string {
	for _, axis := range vnet.Axes {
		if s.asked.Negotiates(axis) {
			s.freeAxes = append(s.freeAxes, axis)
		}
	}
	r := s.relaxed(s.asked)
	_, err := s.view.embed(calendar.New(), r, windowOf(s.now, r))
	within := ""
	if len(s.asked.Negotiable) > 0 {
		within = " within what the request calls negotiable"
	}
	var infeasible *embed.Infeasible
	if errors.As(err, &infeasible) {
		return "nothing similar" + within + " fits even on the empty substrate: " + strings.Join(infeasible.Reasons, "; ")
	}
	return "what is booked leaves no room for anything similar" + within + " at any time: ask again when a lease has been released"
}
