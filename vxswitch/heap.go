package vxswitch

import "sublet/internal/heap"

// timeHeap orders numbers by time, earliest first, ties by number.
type timeHeap struct{ heap heap.Heap }

func newTimeHeap(n int) timeHeap { return timeHeap{heap.New(n)} }

// min returns the earliest number and its time; ok is false if there is none.
func (h *timeHeap) min() (i int, t Time, ok bool) {
	if i = h.heap.Top(); i == heap.None {
		return 0, Forever, false
	}
	return i, Time(h.heap.Key(i).First), true
}

// set puts i at time t, wherever it was.
func (h *timeHeap) set(i int, t Time) { h.heap.Set(i, heap.Key{First: int64(t)}) }

// remove takes i out if it is in.
func (h *timeHeap) remove(i int) { h.heap.Remove(i) }
