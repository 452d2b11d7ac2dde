package calendar

import (
	"slices"
	"time"

	"sublet/vnet"
)

// RoundUp is the first whole second at or after t, in UTC: what is free from t
// on is free then.
func RoundUp(t time.Time) time.Time {
	whole := t.UTC().Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return whole
}

// Drops lists, in order, the instants after t at which less of some element
// becomes booked: the only starts at which a window that did not fit before
// can begin to fit.
func (c *Calendar) Drops(t time.Time) []time.Time {
	return c.changes(t, func(was, is int64) bool { return is < was })
}

// Rises lists, in order, the instants after t at which more of some element
// becomes booked: a window that fits until one of them may not fit any longer.
func (c *Calendar) Rises(t time.Time) []time.Time {
	return c.changes(t, func(was, is int64) bool { return is > was })
}

// changes lists the instants after t at which what is booked changes in a way.
func (c *Calendar) changes(t time.Time, counts func(was, is int64) bool) []time.Time {
	var at []int64
	for _, p := range c.profiles {
		for i := p.after(nano(t)); i < len(p); i++ {
			if counts(p.before(i), p[i].booked) {
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

// Step is what is booked of an element from an instant on, and by how many.
type Step struct {
	At      time.Time
	Booked  int64
	Holders int
}

// Steps lists what is booked of an element during a window: at its start, and
// at every change inside.
func (c *Calendar) Steps(key string, w vnet.Window) []Step {
	p, s := c.profiles[key], spanOf(w)
	i := p.after(s.from)
	steps := []Step{{w.Start, p.before(i), int(p.state(i).holders)}}
	for ; i < len(p) && p[i].at < s.to; i++ {
		steps = append(steps, Step{time.Unix(0, p[i].at).In(w.Start.Location()), p[i].booked, int(p[i].holders)})
	}
	return steps
}

// Over is the first stretch of a window in which more than limit of an
// element is booked; its End lies at or after the window's, or is zero when it
// has none. False: there is no such stretch.
func (c *Calendar) Over(key string, limit int64, w vnet.Window) (vnet.Window, bool) {
	p, s := c.profiles[key], spanOf(w)
	i := p.after(s.from) - 1
	for i < 0 || p[i].booked <= limit {
		if i++; i >= len(p) || p[i].at >= s.to {
			return vnet.Window{}, false
		}
	}
	over := vnet.Window{Start: w.Start}
	if p[i].at > s.from {
		over.Start = time.Unix(0, p[i].at).In(w.Start.Location())
	}
	for i++; i < len(p); i++ {
		if p[i].booked <= limit {
			over.End = time.Unix(0, p[i].at).In(w.Start.Location())
			break
		}
	}
	return over, true
}
