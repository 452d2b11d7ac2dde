package live

import (
	"time"

	"sublet/vxswitch"
)

// stages is where time goes, in the terms of the time model of software
// switches (docs/facts: polling, I/O, rules, actions, overhead). One frame in
// sampling is timed.
type stages struct {
	times   Times
	samples uint64
	rounds  uint64
	seen    uint64
}

// Times are sums over sampled frames.
type Times struct {
	IO      time.Duration `json:"io_ns"`      // read
	Rules   time.Duration `json:"rules_ns"`   // both lookups, queue manager, queue
	Actions time.Duration `json:"actions_ns"` // both schedulers, write
}

const sampling = 256

// timer times the stages of one frame, or nothing.
type timer struct {
	h    *Host
	last vxswitch.Time
}

// start begins with the time the frame's read began.
func (s *stages) start(h *Host, began vxswitch.Time) timer {
	s.seen++
	if s.seen%sampling != 0 {
		return timer{}
	}
	s.samples++
	return timer{h, began}
}

// lap adds the time since the last lap.
func (t *timer) lap(to *time.Duration) {
	if t.h == nil {
		return
	}
	now := t.h.now()
	*to += time.Duration(now - t.last)
	t.last = now
}
