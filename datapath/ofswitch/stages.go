package ofswitch

import (
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"sublet/report"
)

// sampling is how many turns of the loop there are on average for one that is timed,
// from its begin to its end. They are drawn: what comes at regular times would else
// always, or never, be met. A reading of the clock takes some 40 ns.
const sampling = 64

// stages times turns.
type stages struct {
	report.StageTimes
	left int  // turns until one is timed
	on   bool // this turn is timed
	last int64
}

// beginTurn says whether a turn is timed.
func (s *Switch) beginTurn() {
	s.stages.left--
	s.stages.on, s.tables.Found = s.stages.left < 0, nil
	if s.stages.on {
		s.stages.left = rand.IntN(2*sampling - 1)
		s.stages.last = s.now()
		s.tables.Found = s.found
	}
}

// lap adds the time since the last lap to a stage of a timed turn.
func (s *Switch) lap(to *time.Duration) {
	if !s.stages.on {
		return
	}
	now := s.now()
	*to += time.Duration(now - s.stages.last)
	s.stages.last = now
}

// read adds what reading took, of a frame or of finding that there is none.
func (s *Switch) read(took bool) {
	if took && s.stages.on {
		s.stages.Frames++
	}
	s.lap(&s.stages.IO)
}

func (s *Switch) found() { s.lap(&s.stages.Rules) }

// wait waits for events, at most so many milliseconds. A timed turn looks first
// without waiting, so that what it sleeps can be told from what it looks.
func (s *Switch) wait(events []unix.EpollEvent, most int) (int, error) {
	if !s.stages.on {
		return unix.EpollWait(s.epoll, events, most)
	}
	n, err := unix.EpollWait(s.epoll, events, 0)
	s.lap(&s.stages.Polling)
	if n == 0 && err == nil && most != 0 {
		n, err = unix.EpollWait(s.epoll, events, most)
		s.stages.last = s.now()
	}
	return n, err
}
