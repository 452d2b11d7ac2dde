package sched

import "sublet/vxswitch"

// FCFS serves the entry whose head arrived first [000:1272-1287]. O(log n).
type FCFS struct{}

func (FCFS) String() string { return "fcfs" }

// New returns a first come, first served of n entries.
func (FCFS) New(n int, e vxswitch.Entries) vxswitch.Scheduler { return &fcfs{e, newHeap(n)} }

type fcfs struct {
	e vxswitch.Entries
	heap
}

func (f *fcfs) file(i int) { f.set(i, key{first: int64(f.e.Head(i).Order)}) }

func (f *fcfs) Wake(i int)             { f.file(i) }
func (f *fcfs) Sleep(i int)            { f.remove(i) }
func (f *fcfs) Changed(i int)          { f.file(i) }
func (f *fcfs) Sent(i, _ int)          { f.file(i) }
func (f *fcfs) Pick(vxswitch.Time) int { return f.top() }
