package sched

import "sublet/vxswitch"

// RR is round robin, one frame a turn whatever its size. O(1) a frame.
type RR struct{}

func (RR) String() string { return "rr" }

// Bounded: see the cost above.
func (RR) Bounded() {}

// New returns a round robin of n entries.
func (RR) New(n int, _ vxswitch.Entries) vxswitch.Scheduler { return &rr{newRing(n)} }

type rr struct{ ring }

func (r *rr) Wake(i int)             { r.add(i) }
func (r *rr) Sleep(i int)            { r.remove(i) }
func (r *rr) Changed(int)            {}
func (r *rr) Pick(vxswitch.Time) int { return r.at } // none is Nobody

// Sent moves on if it was the cursor's turn.
func (r *rr) Sent(i, _ int) {
	if r.at == i {
		r.step()
	}
}
