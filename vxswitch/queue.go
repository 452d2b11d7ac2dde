package vxswitch

// nothing is the end of a list of nodes.
const nothing = 0

// node is a queued frame in the switch's pool. Node 0 is not used.
type node struct {
	Packet
	next, prev uint32 // in the queue
	later      uint32 // next and previous loan in the queue, of a loan
	earlier    uint32
	loan       bool
}

// pool holds the descriptors of all queued frames. It grows by doubling to
// the most that were ever queued and then allocates no more.
type pool struct {
	nodes []node
	free  uint32
}

func (p *pool) take() uint32 {
	if p.free == nothing {
		p.nodes = append(p.nodes, node{})
		return uint32(len(p.nodes) - 1)
	}
	n := p.free
	p.free = p.nodes[n].next
	return n
}

func (p *pool) give(n uint32) {
	p.nodes[n].next = p.free
	p.free = n
}

// vxb is a virtual crosspoint buffer: a queue of frames and what it may hold.
// Frames are its own or loans (sharing.go); without Flexible all are its own.
//
// A large switch has tens of thousands, of which each frame meets another one:
// what every frame needs comes first and fills two cache lines, and what follows
// from it is not kept (count).
type vxb struct {
	head, tail uint32
	first      uint32 // oldest own frame: what schedulers and managers see as head
	before     uint32 // youngest loan older than first
	oldest     uint32 // oldest loan
	last       uint32 // youngest loan
	bytes      int    // own
	loaned     int    // bytes of loans
	size       int    // b_ij^k; more while it holds more of an older, larger one
	packets    int32  // own
	loans      int32
	cross      int32
	in, out    int16

	sent     Count
	quantum  int
	manager  Manager
	want     int // b_ij^k
	lend     int // bytes of size that others may use while they are idle
	id       int32
	priority int32

	kind    ManagerKind
	borrows listed // among those above their size at the crosspoint
	surplus listed // among those with loans at the output
	dropped [NumCauses]Count
	_       [32]byte // whole cache lines
}

// count is what x has counted.
func (x *vxb) count() Counters {
	c := Counters{Delivered: x.sent, Dropped: x.dropped}
	c.Queued = Count{uint64(x.packets) + uint64(x.loans), uint64(x.held())}
	c.Offered = c.Delivered.Plus(c.Lost()).Plus(c.Queued)
	return c
}

func (x *vxb) occupancy() Occupancy {
	return Occupancy{Bytes: x.bytes, Packets: int(x.packets), Limit: x.want}
}

// held is all that x holds.
func (x *vxb) held() int { return x.bytes + x.loaned }

// push appends a copy of k to x.
func (p *pool) push(x *vxb, k *Packet, loan bool) {
	n := p.take()
	nd := &p.nodes[n]
	nd.Packet = *k
	nd.next, nd.prev, nd.later, nd.earlier, nd.loan = nothing, x.tail, nothing, nothing, false
	if x.tail == nothing {
		x.head = n
	} else {
		p.nodes[x.tail].next = n
	}
	x.tail = n
	switch {
	case loan:
		if x.first == nothing {
			x.before = n
		}
		p.file(x, n, x.last)
	default:
		x.own(k.Size)
		if x.first == nothing {
			x.first = n
		}
	}
}

func (x *vxb) own(size int32)    { x.bytes += int(size); x.packets++ }
func (x *vxb) disown(size int32) { x.bytes -= int(size); x.packets-- }

// file puts n into the list of loans behind earlier, which may be nothing.
func (p *pool) file(x *vxb, n, earlier uint32) {
	nd := &p.nodes[n]
	nd.loan, nd.earlier = true, earlier
	if earlier != nothing {
		nd.later = p.nodes[earlier].later
		p.nodes[earlier].later = n
	} else {
		nd.later = x.oldest
		x.oldest = n
	}
	if nd.later != nothing {
		p.nodes[nd.later].earlier = n
	} else {
		x.last = n
	}
	x.loaned += int(nd.Size)
	x.loans++
}

// unfile takes n out of the list of loans.
func (p *pool) unfile(x *vxb, n uint32) {
	nd := &p.nodes[n]
	if nd.earlier != nothing {
		p.nodes[nd.earlier].later = nd.later
	} else {
		x.oldest = nd.later
	}
	if nd.later != nothing {
		p.nodes[nd.later].earlier = nd.earlier
	} else {
		x.last = nd.earlier
	}
	if x.before == n {
		x.before = nd.earlier
	}
	x.loaned -= int(nd.Size)
	x.loans--
}

// cut takes n out of x: a loan, or the first own frame. Its packet stays until
// the next push.
func (p *pool) cut(x *vxb, n uint32) *Packet {
	nd := &p.nodes[n]
	if nd.loan {
		p.unfile(x, n)
	} else {
		x.disown(nd.Size)
		p.advance(x)
	}
	if nd.prev == nothing {
		x.head = nd.next
	} else {
		p.nodes[nd.prev].next = nd.next
	}
	if nd.next == nothing {
		x.tail = nd.prev
	} else {
		p.nodes[nd.next].prev = nd.prev
	}
	p.give(n)
	return &nd.Packet
}

// lend makes the first own frame of x a loan.
func (p *pool) lend(x *vxb) {
	n := x.first
	x.disown(p.nodes[n].Size)
	p.file(x, n, x.before)
	x.before = n
	p.advance(x)
}

// advance moves first to the next own frame. It passes each frame once.
func (p *pool) advance(x *vxb) {
	n := p.nodes[x.first].next
	for n != nothing && p.nodes[n].loan {
		x.before = n
		n = p.nodes[n].next
	}
	x.first = n
}
