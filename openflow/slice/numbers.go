package slice

import (
	"maps"
	"slices"
)

// pool gives out numbers that the switch knows groups or meters by, the lowest first.
type pool struct {
	used map[uint32]bool
	low  uint32 // all below are used

	// keep, if there is one, is told whose a number of the switch is from now on: the
	// first of its tables, and the controller's number; no tables: nobody's.
	keep func(there uint32, first uint8, own uint32)
}

func newPool() *pool { return &pool{used: make(map[uint32]bool), low: 1} }

func (p *pool) take() uint32 {
	n := p.low
	for p.used[n] {
		n++
	}
	p.used[n], p.low = true, n+1
	return n
}

func (p *pool) give(n uint32) {
	delete(p.used, n)
	p.low = min(p.low, n)
}

// numbers of a slice's groups or meters: the controller's and the switch's.
type numbers struct {
	pool  *pool
	first uint8 // of the slice's tables
	most  int
	there map[uint32]uint32 // the controller's: the switch's
	back  map[uint32]uint32
}

func newNumbers(p *pool, first uint8, most int) numbers {
	return numbers{pool: p, first: first, most: most, there: make(map[uint32]uint32), back: make(map[uint32]uint32)}
}

// place gives the switch's number for one that is changed: a new one, which undo takes
// back, if there is none. ok is false if there are as many as there may be.
func (n *numbers) place(own uint32) (there uint32, undo func(), ok bool) {
	if there, known := n.there[own]; known {
		return there, nil, true
	}
	if len(n.there) >= n.most {
		return 0, nil, false
	}
	there = n.pool.take()
	n.set(own, there)
	return there, func() { n.remove(own) }, true
}

// set has a number of the switch's, which the pool has given out, be the controller's.
func (n *numbers) set(own, there uint32) {
	n.there[own], n.back[there] = there, own
	if n.pool.keep != nil {
		n.pool.keep(there, n.first, own)
	}
}

// release gives up a number, or every one if it is that which stands for all, and says
// which they were at the switch.
func (n *numbers) release(own, all uint32) (there []uint32) {
	list := []uint32{own}
	if own == all {
		list = slices.Sorted(maps.Keys(n.there))
	}
	for _, own := range list {
		if number, ok := n.there[own]; ok {
			there = append(there, number)
			n.remove(own)
		}
	}
	return there
}

func (n *numbers) remove(own uint32) {
	there := n.there[own]
	n.pool.give(there)
	delete(n.back, there)
	delete(n.there, own)
	if n.pool.keep != nil {
		n.pool.keep(there, 0, 0)
	}
}

// saved is what there is now, for restore.
func (n *numbers) saved() map[uint32]uint32 { return maps.Clone(n.there) }

// restore takes back what came and went since saved.
func (n *numbers) restore(was map[uint32]uint32) {
	for own := range maps.Clone(n.there) {
		n.remove(own)
	}
	for own, there := range was {
		n.pool.used[there] = true
		n.set(own, there)
	}
}
