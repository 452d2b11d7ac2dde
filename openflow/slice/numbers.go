package slice

// pool gives out numbers that the switch knows groups or meters by, the lowest first.
type pool struct {
	used map[uint32]bool
}

func (p *pool) take() uint32 {
	n := uint32(1)
	for p.used[n] {
		n++
	}
	p.used[n] = true
	return n
}

// numbers of a slice's groups or meters: the controller's and the switch's.
type numbers struct {
	pool  *pool
	most  int
	there map[uint32]uint32 // the controller's: the switch's
	back  map[uint32]uint32
}

func newNumbers(p *pool, most int) numbers {
	return numbers{pool: p, most: most, there: make(map[uint32]uint32), back: make(map[uint32]uint32)}
}

// add gives a number a place at the switch; ok is false if there are as many as
// there may be.
func (n *numbers) add(own uint32) (there uint32, ok bool) {
	if len(n.there) >= n.most {
		return 0, false
	}
	there = n.pool.take()
	n.there[own], n.back[there] = there, own
	return there, true
}

func (n *numbers) remove(own uint32) {
	there := n.there[own]
	delete(n.pool.used, there)
	delete(n.back, there)
	delete(n.there, own)
}
