package sched

// heap orders some of n entries by a key, smallest first; ties by number.
// O(log n), nothing is allocated after newHeap.
type heap struct {
	key  []key
	pos  []int32 // in list, none: not in
	list []int32
}

// key is compared by first, then by second.
type key struct{ first, second int64 }

func (a key) less(b key) bool {
	return a.first < b.first || a.first == b.first && a.second < b.second
}

func newHeap(n int) heap {
	h := heap{key: make([]key, n), pos: make([]int32, n), list: make([]int32, 0, n)}
	for i := range h.pos {
		h.pos[i] = none
	}
	return h
}

// top is the smallest entry, none if there are none.
func (h *heap) top() int {
	if len(h.list) == 0 {
		return none
	}
	return int(h.list[0])
}

// set gives i the key k, whether it was in or not.
func (h *heap) set(i int, k key) {
	h.key[i] = k
	if h.pos[i] == none {
		h.pos[i] = int32(len(h.list))
		h.list = append(h.list, int32(i))
	}
	h.up(int(h.pos[i]))
	h.down(int(h.pos[i]))
}

func (h *heap) has(i int) bool { return h.pos[i] != none }

func (h *heap) remove(i int) {
	p, last := int(h.pos[i]), len(h.list)-1
	h.swap(p, last)
	h.list, h.pos[i] = h.list[:last], none
	if p < last {
		moved := int(h.list[p])
		h.up(p)
		h.down(int(h.pos[moved]))
	}
}

func (h *heap) less(p, q int) bool {
	a, b := h.list[p], h.list[q]
	return h.key[a].less(h.key[b]) || h.key[a] == h.key[b] && a < b
}

func (h *heap) swap(p, q int) {
	h.list[p], h.list[q] = h.list[q], h.list[p]
	h.pos[h.list[p]], h.pos[h.list[q]] = int32(p), int32(q)
}

func (h *heap) up(p int) {
	for p > 0 && h.less(p, (p-1)/2) {
		h.swap(p, (p-1)/2)
		p = (p - 1) / 2
	}
}

func (h *heap) down(p int) {
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
