package lease

import (
	"maps"
	"slices"
	"time"

	"sublet/vnet"
)

// offer adds the nearest changes that would be made: the longest window with
// what else is asked, and the largest part of what the minima would grow by.
func (r *revision) offer(refusal *vnet.Rejection) {
	for _, way := range []struct {
		axis   vnet.Axis
		search func() (vnet.Request, bool)
	}{{vnet.AxisDuration, r.longest}, {vnet.AxisMinimum, r.largest}} {
		request, found := way.search()
		if !r.request.Negotiates(way.axis) || !found {
			continue
		}
		changes := revisions(r.request, request)
		if len(changes) > 0 {
			refusal.Offers = append(refusal.Offers, vnet.Offer{Axes: []vnet.Axis{way.axis}, Request: request, Changes: changes})
		}
	}
	if len(refusal.Offers) > 0 {
		first := refusal.Offers[0]
		refusal.Offer, refusal.Changes, refusal.Never = &first.Request, first.Changes, ""
	}
}

// longest bisects the length, in whole seconds, up to what is asked.
func (r *revision) longest() (vnet.Request, bool) {
	low := max(r.now.Sub(r.lease.Window.Start), 0).Truncate(time.Second) + time.Second
	low = max(low, r.request.LastTimed().Truncate(time.Second)+time.Second)
	high := r.request.For
	if high == 0 {
		high = vnet.MaxDuration
	}
	at := func(i int64) vnet.Request { return lasting(r.request, low+time.Duration(i)*time.Second) }
	return r.bisect(int64((high-low)/time.Second)+1, at)
}

// finest is in how many parts the growth of minima is cut.
const finest = 1000

// mostSingled is of how many links each is tried by itself: the book waits.
const mostSingled = 64

// largest bisects by how much minima grow: all by the same part, then those of links that
// have room as they are asked by all, and the others by what that leaves.
func (r *revision) largest() (vnet.Request, bool) {
	type place struct{ link, stage string }
	was := make(map[place][2]vnet.Bandwidth)
	former := rewrite(r.lease.Request)
	eachBandwidth(&former, func(link, stage string, both *[2]vnet.Bandwidth) { was[place{link, stage}] = *both })
	whole, least := make(map[string]bool), int64(0)
	at := func(i int64) vnet.Request {
		part := rewrite(r.request)
		eachBandwidth(&part, func(link, stage string, both *[2]vnet.Bandwidth) {
			for d := range both {
				if !whole[link] {
					both[d] = grown(was[place{link, stage}][d], both[d], ratio{least + i, finest})
				}
			}
		})
		part.FollowLinks()
		return part
	}
	least = r.most(finest, at)
	names := slices.Sorted(maps.Keys(demanding(r.request)))
	if least < 0 || r.form || len(names) > mostSingled {
		return r.bisect(min(least+1, 1), at)
	}
	for _, name := range names {
		if whole[name] = true; !r.possible(at(0)) {
			delete(whole, name)
		}
	}
	return r.bisect(finest-least, at)
}

// grown takes a part of the growth of a minimum; what is static stays static.
func grown(was, is vnet.Bandwidth, part ratio) vnet.Bandwidth {
	if is.Min <= was.Min {
		return is
	}
	static := is.Min == is.Max
	is.Min = was.Min + part.times(is.Min-was.Min)
	if static {
		is.Max = is.Min
	}
	return is
}

// bisect finds the largest of n variants, from 0 on, that is possible; it is
// supposed that all below one that is possible are.
func (r *revision) bisect(n int64, at func(int64) vnet.Request) (vnet.Request, bool) {
	i := r.most(n, at)
	if i < 0 {
		return vnet.Request{}, false
	}
	found := at(i)
	return found, found.Check() == nil
}

// most is which of n variants that is; -1: none is possible.
func (r *revision) most(n int64, at func(int64) vnet.Request) int64 {
	if n <= 0 || !r.possible(at(0)) {
		return -1
	}
	low, high := int64(0), n
	for high-low > 1 {
		if middle := low + (high-low)/2; r.possible(at(middle)) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
