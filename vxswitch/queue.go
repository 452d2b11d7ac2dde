package vxswitch

// nothing is the end of a list of nodes.
const nothing = 0

// node is a queued frame in the switch's pool, linked to its neighbours in
// the queue. Node 0 is not used.
type node struct {
	Packet
	next, prev uint32
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
type vxb struct {
	head, tail uint32
	bytes      int
	size       int // b_ij^k; more while it holds more of an older, larger one
	want       int // b_ij^k
	lend       int // bytes of size that others may use while they are idle
	cross      int32
	prev, next *vxb // among the borrowers of the crosspoint
	borrower   bool
	manager    Manager
	kind       ManagerKind
	quantum    int
	priority   int
	id         ID
	in, out    int16
	count      Counters
}

func (x *vxb) packets() int { return int(x.count.Queued.Packets) }

func (x *vxb) occupancy() Occupancy {
	return Occupancy{Bytes: x.bytes, Packets: x.packets(), Limit: x.want}
}

// push appends a copy of k to x.
func (p *pool) push(x *vxb, k *Packet) {
	n := p.take()
	nd := &p.nodes[n]
	nd.Packet, nd.next, nd.prev = *k, nothing, x.tail
	if x.tail == nothing {
		x.head = n
	} else {
		p.nodes[x.tail].next = n
	}
	x.tail = n
	x.bytes += int(k.Size)
	x.count.Queued.add(k.Size)
}

// cut takes node n, head or tail, out of x and returns its frame.
func (p *pool) cut(x *vxb, n uint32) Packet {
	nd := &p.nodes[n]
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
	k := nd.Packet
	x.bytes -= int(k.Size)
	x.count.Queued.sub(k.Size)
	p.give(n)
	return k
}
