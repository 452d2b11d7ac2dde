package lease

import (
	"slices"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// openEnded stands for the duration of a lease without an end when its delay
// or an end of it is weighed.
const openEnded = 24 * time.Hour

// later finds the earliest start, not after a latest one if that is stated,
// with the same duration. When there are more than can be tried, the last is
// tried too, at which everything booked for a time has ended.
func (s *search) later(r vnet.Request, latest time.Time) (vnet.Request, bool) {
	starts := s.starts(r)
	if !latest.IsZero() {
		starts = slices.DeleteFunc(starts, func(t time.Time) bool { return t.After(latest) })
	}
	if len(starts) > s.left && s.left > 0 {
		starts = append(starts[:s.left-1:s.left-1], starts[len(starts)-1])
	}
	for _, start := range starts {
		if moved := startingAt(r, start); s.fits(moved) {
			return moved, true
		}
	}
	return r, false
}

// startingAt states a start and leaves no choice of it.
func startingAt(r vnet.Request, start time.Time) vnet.Request {
	r.Start, r.Before = start, time.Time{}
	return r
}

// starts are the whole seconds from which on the window, or one of its
// stages, begins when something booked has ended; between them nothing new
// can fit.
func (s *search) starts(r vnet.Request) []time.Time {
	asked := windowOf(s.now, r).Start
	ends := s.view.bounds(asked, func(m vnet.Maintenance) time.Time { return m.End })
	return startsAt(append(s.view.calendar.Drops(asked), ends...), asked, r)
}

// startsIn is starts in another calendar.
func startsIn(cal *calendar.Calendar, asked time.Time, r vnet.Request) []time.Time {
	return startsAt(cal.Drops(asked), asked, r)
}

// startsAt is starts when something ends at some instants.
func startsAt(drops []time.Time, asked time.Time, r vnet.Request) []time.Time {
	afters := []time.Duration{0}
	for _, stage := range r.Stages {
		afters = append(afters, stage.After)
	}
	var starts []time.Time
	for _, drop := range drops {
		for _, after := range afters {
			if start := calendar.RoundUp(drop.Add(-after)); start.After(asked) {
				starts = append(starts, start)
			}
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	return slices.CompactFunc(starts, time.Time.Equal)
}

// last is a request that begins when everything booked for a time has ended.
func (s *search) last(r vnet.Request) vnet.Request {
	if starts := s.starts(r); len(starts) > 0 {
		return startingAt(r, starts[len(starts)-1])
	}
	return r
}

func startChanges(now time.Time, asked, r vnet.Request) ([]vnet.Change, float64) {
	was, is := windowOf(now, asked).Start, windowOf(now, r).Start
	if is.Equal(was) {
		return nil, 0
	}
	from := "now"
	if !asked.Start.IsZero() {
		from = stamp(was)
	}
	if !asked.Before.IsZero() {
		from += " to " + stamp(asked.Before)
	}
	return []vnet.Change{{What: "start", From: from, To: stamp(is)}}, float64(is.Sub(was)) / float64(lengthOf(asked))
}

// lengthOf is a request's duration, for comparing.
func lengthOf(r vnet.Request) time.Duration {
	if r.For == 0 {
		return openEnded
	}
	return r.For
}
