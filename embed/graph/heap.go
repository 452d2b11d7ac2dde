package graph

// Keys of the heap hold a cost and a host.
const (
	hostBits = 20
	hostMask = 1<<hostBits - 1
)

func (t *Least) push(key uint64) {
	h := append(t.heap, key)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up] <= key {
			break
		}
		h[i], i = h[up], up
	}
	h[i], t.heap = key, h
}

func (t *Least) pop() uint64 {
	h := t.heap
	top, key := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	t.heap = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1] < h[down] {
			down++
		}
		if h[down] >= key {
			break
		}
		h[i], i = h[down], down
	}
	h[i] = key
	return top
}
