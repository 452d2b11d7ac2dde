package fabric

// item is a switch in a search, by what the path through it costs at least.
type item struct{ cost, node int32 }

// queue is a binary heap; container/heap's calls through an interface would
// take half of the time of a search.
type queue []item

func (q *queue) push(x item) {
	*q = append(*q, x)
	h := *q
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (q *queue) pop() item {
	h := *q
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	*q = h
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(h) {
			return top
		}
		if right := child + 1; right < len(h) && h[right].before(h[child]) {
			child = right
		}
		if !h[child].before(h[i]) {
			return top
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

func (a item) before(b item) bool {
	if a.cost != b.cost {
		return a.cost < b.cost
	}
	return a.node < b.node
}
