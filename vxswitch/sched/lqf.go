package sched

import "sublet/vxswitch"

// LQF serves the entry with most bytes queued; of several the one served
// longest ago, so not the same twice running [000:1272-1287]. O(log n).
type LQF struct{}

func (LQF) String() string { return "lqf" }

// Bounded: see the cost above.
func (LQF) Bounded() {}

// New returns a longest queue first of n entries.
func (LQF) New(n int, e vxswitch.Entries) vxswitch.Scheduler {
	return &lqf{e: e, heap: newHeap(n), served: make([]int64, n)}
}

type lqf struct {
	e vxswitch.Entries
	heap
	served []int64 // number of the last service
	turn   int64
}

func (l *lqf) file(i int) {
	l.set(i, key{first: -int64(l.e.Backlog(i)), second: l.served[i]})
}

func (l *lqf) Wake(i int)             { l.file(i) }
func (l *lqf) Sleep(i int)            { l.remove(i) }
func (l *lqf) Changed(i int)          { l.file(i) }
func (l *lqf) Pick(vxswitch.Time) int { return l.top() }

func (l *lqf) Sent(i, _ int) {
	l.turn++
	l.served[i] = l.turn
	l.file(i)
}
