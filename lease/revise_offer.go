package lease

import (
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

// largest bisects by how much minima grow.
func (r *revision) largest() (vnet.Request, bool) {
	type place struct{ link, stage string }
	was := make(map[place][2]vnet.Bandwidth)
	former := rewrite(r.lease.Request)
	eachBandwidth(&former, func(link, stage string, both *[2]vnet.Bandwidth) { was[place{link, stage}] = *both })
	return r.bisect(finest, func(i int64) vnet.Request {
		part := rewrite(r.request)
		eachBandwidth(&part, func(link, stage string, both *[2]vnet.Bandwidth) {
			for d := range both {
				both[d] = grown(was[place{link, stage}][d], both[d], ratio{i, finest})
			}
		})
		part.FollowLinks()
		return part
	})
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
	if n <= 0 || !r.possible(at(0)) {
		return vnet.Request{}, false
	}
	low, high := int64(0), n
	for high-low > 1 {
		if middle := low + (high-low)/2; r.possible(at(middle)) {
			low = middle
		} else {
			high = middle
		}
	}
	found := at(low)
	return found, found.Check() == nil
}
