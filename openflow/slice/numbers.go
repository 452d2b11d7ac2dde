package slice

import (
	"maps"
	"slices"
)

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
	n.there[own], n.back[there] = there, own
	return there, func() { n.remove(own) }, true
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
	delete(n.pool.used, there)
	delete(n.back, there)
	delete(n.there, own)
}
