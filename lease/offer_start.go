package lease

import (
	"slices"
	"time"

	"sublet/vnet"
)

// mostStarts bounds how many starts are tried: the earliest, and the last, at
// which everything booked for a time has ended.
const mostStarts = 32

// openWindow stands for the duration of a lease without an end when its delay
// is weighed.
const openWindow = 24 * time.Hour

// laterStart looks for the earliest start with the same duration.
func (s *search) laterStart() {
	asked := windowOf(s.now, s.asked).Start
	for _, start := range s.starts(asked) {
		cost := s.delay(start.Sub(asked))
		if s.tooDear(cost) {
			return
		}
		moved := s.asked
		moved.Start = start
		if s.fits(moved) {
			from := "now"
			if !s.asked.Start.IsZero() {
				from = stamp(asked)
			}
			s.take(offer{moved, []vnet.Change{{What: "start", From: from, To: stamp(start)}}, cost})
			return
		}
	}
}

// starts are the instants at which the window, or one of its stages, begins
// just when something booked ends; between them nothing new can fit.
func (s *search) starts(asked time.Time) []time.Time {
	afters := []time.Duration{0}
	for _, stage := range s.asked.Stages {
		afters = append(afters, stage.After)
	}
	var starts []time.Time
	for _, drop := range s.book.calendar.Drops(asked) {
		for _, after := range afters {
			if start := drop.Add(-after).UTC(); start.After(asked) {
				starts = append(starts, start)
			}
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	starts = slices.CompactFunc(starts, time.Time.Equal)
	if len(starts) > mostStarts {
		starts = append(starts[:mostStarts-1:mostStarts-1], starts[len(starts)-1])
	}
	return starts
}

func (s *search) delay(d time.Duration) float64 {
	whole := s.asked.For
	if whole == 0 {
		whole = openWindow
	}
	return float64(d) / float64(whole)
}
