package sched

import (
	"sublet/internal/heap"
	"sublet/vxswitch"
)

// LQF serves the entry with most bytes queued; of several the one served
// longest ago, so not the same twice running (Anhalt, thesis, section 4.4.1.2). O(log n).
type LQF struct{}

func (LQF) String() string { return "lqf" }

// Bounded: see the cost above.
func (LQF) Bounded() {}

// New returns a longest queue first of n entries.
func (LQF) New(n int, e vxswitch.Entries) vxswitch.Scheduler {
	return &lqf{e: e, heap: heap.New(n), served: make([]int64, n)}
}

type lqf struct {
	e      vxswitch.Entries
	heap   heap.Heap
	served []int64 // number of the last service
	turn   int64
}

func (l *lqf) file(i int) {
	l.heap.Set(i, heap.Key{First: -int64(l.e.Backlog(i)), Second: l.served[i]})
}

func (l *lqf) Wake(i int)             { l.file(i) }
func (l *lqf) Sleep(i int)            { l.heap.Remove(i) }
func (l *lqf) Changed(i int)          { l.file(i) }
func (l *lqf) Pick(vxswitch.Time) int { return l.heap.Top() }

func (l *lqf) Sent(i, _ int) {
	l.turn++
	l.served[i] = l.turn
	l.file(i)
}
