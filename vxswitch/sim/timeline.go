package sim

import (
	"math"
	"time"
)

// never is the time of a slot in which nothing is to happen.
const never = time.Duration(math.MaxInt64)

// timeline holds one time for each of n slots and knows the earliest: a winner
// tree, O(log n) per change, no allocation. At equal times the lower slot
// comes first.
type timeline struct {
	times []time.Duration // padded to a power of two
	win   []int32         // win[1] is the earliest slot; children of k are 2k, 2k+1
}

func newTimeline(n int) *timeline {
	size := 2
	for size < n {
		size *= 2
	}
	t := &timeline{times: make([]time.Duration, size), win: make([]int32, size)}
	for i := range t.times {
		t.times[i] = never
	}
	for i := 0; i < size; i += 2 {
		t.set(i, never)
	}
	return t
}

// earliest slot and its time, never if there is none.
func (t *timeline) earliest() (slot int, at time.Duration) {
	slot = int(t.win[1])
	return slot, t.times[slot]
}

func (t *timeline) set(slot int, at time.Duration) {
	t.times[slot] = at
	left, right := int32(slot&^1), int32(slot|1)
	for k := (len(t.win) + slot) / 2; ; k /= 2 {
		w := left
		if t.times[right] < t.times[left] {
			w = right
		}
		t.win[k] = w
		if k == 1 {
			return
		}
		left, right = t.win[k&^1], t.win[k|1]
	}
}
