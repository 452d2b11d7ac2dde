package ofswitch

import "time"

// putAside keeps what belongs to the frame on its way, which waits at a meter.
func (s *Switch) putAside() any {
	if s.current == nil {
		return nil
	}
	r := *s.current
	return &r
}

// takeUp makes a frame that waited the one on its way.
func (s *Switch) takeUp(aside any) { s.current, _ = aside.(*received) }

// untilHeld is how many milliseconds there are until a frame that waits goes on, at most
// so many.
func (s *Switch) untilHeld(most int) int {
	at, any := s.tables.Holding()
	if !any {
		return most
	}
	left := (at - s.now() + int64(time.Millisecond) - 1) / int64(time.Millisecond)
	return int(min(max(left, 0), int64(most)))
}

// release has frames go on that have waited long enough. Programs are told when none
// waits at a meter and none is on its way to.
func (s *Switch) release() {
	s.tables.Release(s.now())
	if s.current = nil; s.emptied {
		s.tables.Rested()
	}
}
