package live

import (
	"time"

	"sublet/vxswitch"
)

// stages is where the thread's time goes, in the terms of the time model of
// software switches (docs/vxswitch-live.md):
//
//	T = polling + I/O + rules + actions + overhead
//
// One turn of the loop in sampling is timed, from its begin to its end; what is
// slept in it is not counted.
type stages struct {
	times   Times
	samples uint64 // frames of timed turns
	rounds  uint64
	turns   uint64
	on      bool // this turn is timed
	last    vxswitch.Time
}

// Times are sums over timed turns.
type Times struct {
	Polling  time.Duration `json:"polling_ns"`  // looking which ports have frames
	IO       time.Duration `json:"io_ns"`       // reading and writing them
	Rules    time.Duration `json:"rules_ns"`    // both lookups, queue manager, queue
	Actions  time.Duration `json:"actions_ns"`  // both schedulers
	Overhead time.Duration `json:"overhead_ns"` // the rest: what others asked for, capacities, the round itself
}

// stages gives the times by their names.
func (t Times) stages() []stage {
	return []stage{{"polling", t.Polling}, {"io", t.IO}, {"rules", t.Rules}, {"actions", t.Actions}, {"overhead", t.Overhead}}
}

type stage struct {
	name string
	sum  time.Duration
}

const sampling = 64

// begin begins a turn.
func (s *stages) begin(h *Host) {
	s.turns++
	if s.on = s.turns%sampling == 0; s.on {
		s.last = h.now()
	}
}

// lap adds the time since the last lap to a stage of a timed turn.
func (s *stages) lap(h *Host, to *time.Duration) {
	if !s.on {
		return
	}
	now := h.now()
	*to += time.Duration(now - s.last)
	s.last = now
}

// slept leaves out the time since the last lap.
func (s *stages) slept(h *Host) {
	if s.on {
		s.last = h.now()
	}
}
