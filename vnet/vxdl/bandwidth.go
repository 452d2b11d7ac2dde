package vxdl

import (
	"maps"
	"slices"

	"sublet/vnet"
)

// bandwidth reads both directions into l, and what events change.
func (r *reader) bandwidth(l *vnet.VirtualLink, e *element) (map[int][2]vnet.Bandwidth, error) {
	if e == nil {
		return nil, nil
	}
	f, err := r.fields(e, "bandwidth")
	if err != nil {
		return nil, err
	}
	var rates [2]course
	for d, name := range [2]string{"forward", "reverse"} {
		if rates[d], err = r.course(f.one(name)); err != nil {
			return nil, err
		}
	}
	forward, reverse := f.one("forward"), f.one("reverse")
	switch {
	case forward != nil && reverse == nil:
		r.note(e, "no reverse: it is taken to be the same as forward")
		rates[vnet.Reverse] = rates[vnet.Forward]
	case forward == nil && reverse != nil:
		r.note(e, "no forward: that direction is best effort")
	}
	return r.both(l, rates), nil
}

// both sets l's rates at the start and returns those of the stages that change
// either direction.
func (r *reader) both(l *vnet.VirtualLink, rates [2]course) map[int][2]vnet.Bandwidth {
	now := [2]vnet.Bandwidth{rates[vnet.Forward].start, rates[vnet.Reverse].start}
	l.Bandwidth = now
	changes := make(map[int][2]vnet.Bandwidth)
	for i := range r.request.Stages {
		changed := false
		for d := range rates {
			if b, ok := rates[d].stages[i]; ok {
				now[d], changed = b, true
			}
		}
		if changed {
			changes[i] = now
		}
	}
	return changes
}

// course is the bandwidth of one direction over time.
type course struct {
	start  vnet.Bandwidth
	stages map[int]vnet.Bandwidth
}

func (r *reader) course(e *element) (course, error) {
	if e == nil {
		return course{}, nil
	}
	c, err := r.capacity(e, rateUnits)
	if err != nil {
		return course{}, err
	}
	way := course{stages: make(map[int]vnet.Bandwidth)}
	for _, i := range slices.Sorted(maps.Keys(c.stages)) {
		if way.stages[i], err = r.rate(c.stages[i]); err != nil {
			return way, err
		}
	}
	if c.start != nil {
		way.start, err = r.rate(c.start)
		return way, err
	}
	if first, ok := way.stages[0]; ok && r.request.Stages[0].After == 0 {
		way.start = first
		return way, nil
	}
	r.note(e, "states no value before its first event: best effort until then")
	return way, nil
}

// rate turns one value into a bandwidth.
func (r *reader) rate(a *amount) (vnet.Bandwidth, error) {
	if a.choice {
		r.lose(a.element, "the steps are not kept: any rate from the smallest to the largest may be given")
	}
	switch {
	case a.high == 0:
		return vnet.Bandwidth{}, r.fail(a.element, "a maximum of zero lets nothing through: leave bandwidth out for best effort, or state a rate")
	case a.low < 0 && a.high < 0:
		return vnet.Bandwidth{}, nil
	case a.high < 0:
		return vnet.Bandwidth{Min: vnet.Rate(a.low), Max: vnet.Unbounded}, nil
	}
	return vnet.Bandwidth{Min: vnet.Rate(max(a.low, 0)), Max: vnet.Rate(a.high)}, nil
}
