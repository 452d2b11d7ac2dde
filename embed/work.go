package embed

import "sublet/internal/splitmix"

// Work is counted in arcs that searches look at and hosts that are weighed.
// workPerMillisecond of it takes at most a millisecond on a processor of 2015
// or later (docs/embedding.md has the measurement).
const workPerMillisecond = 24_500

// random is what the search draws from: it wants variety, the same on every
// machine.
type random struct{ splitmix.Source }

// below is a number from 0 up to, but not including, n.
func (r *random) below(n int) int { return int(r.Next() % uint64(n)) }

// spent is the work done so far, of which the answer's effort is told.
func (s *search) spent() int {
	work := s.graph.Steps() + s.otherWork
	s.effort.Spend(work - s.reported)
	s.reported = work
	return work
}

// until is the work at which so much more has been done, or all that the
// answer may take.
func (s *search) until(work int) int { return s.spent() + min(work, s.effort.left()) }

// ended says that the answer may take no more work.
func (s *search) ended() bool {
	s.spent()
	return s.effort.Over()
}
