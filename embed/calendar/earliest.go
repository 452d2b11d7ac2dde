package calendar

import (
	"math"
	"slices"
	"time"

	"sublet/vnet"
)

// Drops lists, in order, the instants after t at which less of some element
// becomes booked: the only starts at which a window that did not fit before
// can begin to fit.
func (c *Calendar) Drops(t time.Time) []time.Time {
	var at []int64
	for _, p := range c.profiles {
		for i := p.after(nano(t)); i < len(p); i++ {
			if p[i].booked < p.before(i) {
				at = append(at, p[i].at)
			}
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	times := make([]time.Time, len(at))
	for i, ns := range at {
		times[i] = time.Unix(0, ns).In(t.Location())
	}
	return times
}

// Earliest returns the first window of a duration (0: open) that begins at
// from or at one of the Drops after it and for which fits says yes. It asks
// at most limit times.
func (c *Calendar) Earliest(from time.Time, duration time.Duration, limit int, fits func(vnet.Window) bool) (vnet.Window, bool) {
	for _, start := range append([]time.Time{from}, c.Drops(from)...) {
		if limit--; limit < 0 {
			break
		}
		w := vnet.Window{Start: start}
		if duration > 0 {
			w.End = start.Add(duration)
		}
		if fits(w) {
			return w, true
		}
	}
	return vnet.Window{}, false
}

// FreeAt is the first instant from t on at which at most limit of an element
// is booked; false: never again.
func (c *Calendar) FreeAt(key string, limit int64, t time.Time) (time.Time, bool) {
	p := c.profiles[key]
	i := p.after(nano(t))
	if p.before(i) <= limit {
		return t, true
	}
	for ; i < len(p); i++ {
		if p[i].booked <= limit && p[i].at != math.MaxInt64 {
			return time.Unix(0, p[i].at).In(t.Location()), true
		}
	}
	return time.Time{}, false
}
