// Package heap is a priority queue of the numbers below a bound, each with a key
// that may change (an indexed binary heap). Set, Remove and Has find a number in
// it at once.
package heap

// Heap orders some of the numbers below n by key, smallest first; equal keys by
// number. Operations are O(log n). Nothing is allocated after New.
type Heap struct {
	key  []Key
	pos  []int32 // by number: its place in list; None: it is not in
	list []int32
}

// Key is compared by First, then by Second.
type Key struct{ First, Second int64 }

// None is what Top returns of an empty heap.
const None = -1

// New returns an empty heap of numbers below n.
func New(n int) Heap {
	h := Heap{key: make([]Key, n), pos: make([]int32, n), list: make([]int32, 0, n)}
	for i := range h.pos {
		h.pos[i] = None
	}
	return h
}

// Top is the number with the smallest key; None: the heap is empty.
func (h *Heap) Top() int {
	if len(h.list) == 0 {
		return None
	}
	return int(h.list[0])
}

// Key is that of a number in the heap.
func (h *Heap) Key(i int) Key { return h.key[i] }

// Has says whether a number is in the heap.
func (h *Heap) Has(i int) bool { return h.pos[i] != None }

// Set gives a number a key, whether it was in the heap or not.
func (h *Heap) Set(i int, k Key) {
	if h.pos[i] == None {
		h.pos[i] = int32(len(h.list))
		h.list = append(h.list, int32(i))
	} else if h.key[i] == k {
		return
	}
	h.key[i] = k
	h.up(int(h.pos[i]))
	h.down(int(h.pos[i]))
}

// Remove takes a number out, if it is in.
func (h *Heap) Remove(i int) {
	p := int(h.pos[i])
	if p == None {
		return
	}
	last := len(h.list) - 1
	h.swap(p, last)
	h.list, h.pos[i] = h.list[:last], None
	if p < last {
		moved := h.list[p]
		h.up(p)
		h.down(int(h.pos[moved]))
	}
}

func (h *Heap) less(p, q int) bool {
	i, j := h.list[p], h.list[q]
	a, b := &h.key[i], &h.key[j]
	if a.First != b.First {
		return a.First < b.First
	}
	return a.Second < b.Second || a.Second == b.Second && i < j
}

func (h *Heap) swap(p, q int) {
	h.list[p], h.list[q] = h.list[q], h.list[p]
	h.pos[h.list[p]], h.pos[h.list[q]] = int32(p), int32(q)
}

func (h *Heap) up(p int) {
	for p > 0 && h.less(p, (p-1)/2) {
		h.swap(p, (p-1)/2)
		p = (p - 1) / 2
	}
}

func (h *Heap) down(p int) {
	for c := 2*p + 1; c < len(h.list); c = 2*p + 1 {
		if c+1 < len(h.list) && h.less(c+1, c) {
			c++
		}
		if !h.less(c, p) {
			return
		}
		h.swap(p, c)
		p = c
	}
}
