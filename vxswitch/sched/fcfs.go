package sched

import (
	"sublet/internal/heap"
	"sublet/vxswitch"
)

// FCFS serves the entry whose head arrived first (Anhalt, thesis, section 4.4.1.2). O(log n).
type FCFS struct{}

func (FCFS) String() string { return "fcfs" }

// Bounded: see the cost above.
func (FCFS) Bounded() {}

// New returns a first come, first served of n entries.
func (FCFS) New(n int, e vxswitch.Entries) vxswitch.Scheduler {
	return &fcfs{e: e, heap: heap.New(n), awake: make([]bool, n), isNew: make([]bool, n), news: make([]int32, 0, n)}
}

// fcfs looks at heads only when asked to pick: a virtual switch says which
// frame it offers when it is its turn, not before.
type fcfs struct {
	e     vxswitch.Entries
	heap  heap.Heap
	awake []bool
	isNew []bool  // listed in news
	news  []int32 // changed since the last Pick
}

func (f *fcfs) Wake(i int)    { f.awake[i] = true; f.Changed(i) }
func (f *fcfs) Sent(i, _ int) { f.Changed(i) }

func (f *fcfs) Changed(i int) {
	if !f.isNew[i] {
		f.isNew[i] = true
		f.news = append(f.news, int32(i))
	}
}

// Sleep leaves i among the news, where Pick passes over it.
func (f *fcfs) Sleep(i int) {
	f.awake[i] = false
	f.heap.Remove(i)
}

func (f *fcfs) Pick(vxswitch.Time) int {
	for _, i := range f.news {
		f.isNew[i] = false
		if f.awake[i] {
			f.heap.Set(int(i), heap.Key{First: int64(f.e.Head(int(i)).Order)})
		}
	}
	f.news = f.news[:0]
	return f.heap.Top()
}
