package vxswitch

// timeHeap orders numbers below n by time, earliest first, ties by number.
// Every number is in it at most once. O(log n), no allocation after make.
type timeHeap struct {
	key  []Time
	pos  []int32 // in heap, -1: not in
	heap []int32
}

func newTimeHeap(n int) timeHeap {
	h := timeHeap{key: make([]Time, n), pos: make([]int32, n), heap: make([]int32, 0, n)}
	for i := range h.pos {
		h.pos[i] = -1
	}
	return h
}

// min returns the earliest number and its time; ok is false if there is none.
func (h *timeHeap) min() (i int, t Time, ok bool) {
	if len(h.heap) == 0 {
		return 0, Forever, false
	}
	i = int(h.heap[0])
	return i, h.key[i], true
}

// set puts i at time t, wherever it was.
func (h *timeHeap) set(i int, t Time) {
	if h.pos[i] >= 0 && h.key[i] == t {
		return
	}
	h.key[i] = t
	if h.pos[i] < 0 {
		h.pos[i] = int32(len(h.heap))
		h.heap = append(h.heap, int32(i))
	}
	h.up(int(h.pos[i]))
	h.down(int(h.pos[i]))
}

// remove takes i out if it is in.
func (h *timeHeap) remove(i int) {
	p := int(h.pos[i])
	if p < 0 {
		return
	}
	last := len(h.heap) - 1
	h.swap(p, last)
	h.heap, h.pos[i] = h.heap[:last], -1
	if p < last {
		h.up(p)
		h.down(int(h.pos[h.heap[p]]))
	}
}

func (h *timeHeap) less(p, q int) bool {
	a, b := h.heap[p], h.heap[q]
	return h.key[a] < h.key[b] || h.key[a] == h.key[b] && a < b
}

func (h *timeHeap) swap(p, q int) {
	h.heap[p], h.heap[q] = h.heap[q], h.heap[p]
	h.pos[h.heap[p]], h.pos[h.heap[q]] = int32(p), int32(q)
}

func (h *timeHeap) up(p int) {
	for p > 0 && h.less(p, (p-1)/2) {
		h.swap(p, (p-1)/2)
		p = (p - 1) / 2
	}
}

func (h *timeHeap) down(p int) {
	for {
		c := 2*p + 1
		if c >= len(h.heap) {
			return
		}
		if c+1 < len(h.heap) && h.less(c+1, c) {
			c++
		}
		if !h.less(c, p) {
			return
		}
		h.swap(p, c)
		p = c
	}
}
