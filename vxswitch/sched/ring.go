package sched

// ring is a circular list of some of n entries with a cursor. All calls are
// O(1) and allocate nothing.
type ring struct {
	next, prev []int32
	at         int // the cursor, none if empty
	size       int
}

const none = -1

func newRing(n int) ring {
	return ring{next: make([]int32, n), prev: make([]int32, n), at: none}
}

// add puts i where the cursor comes last.
func (r *ring) add(i int) {
	r.size++
	if r.at == none {
		r.at, r.next[i], r.prev[i] = i, int32(i), int32(i)
		return
	}
	last := r.prev[r.at]
	r.next[i], r.prev[i] = int32(r.at), last
	r.next[last], r.prev[r.at] = int32(i), int32(i)
}

// remove takes i out. A cursor on it goes to the next.
func (r *ring) remove(i int) {
	r.size--
	if r.size == 0 {
		r.at = none
		return
	}
	r.next[r.prev[i]], r.prev[r.next[i]] = r.next[i], r.prev[i]
	if r.at == i {
		r.step()
	}
}

func (r *ring) step() { r.at = int(r.next[r.at]) }
