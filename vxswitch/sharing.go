package vxswitch

// Flexible sharing of a crosspoint's memory.
//
// VXB k has size b, lends up to L = Lend·b of it and holds o bytes. It
// borrows e = max(0, o-b) and has idle to lend l = min(L, max(0, b-o)).
//
//	Invariant: at every crosspoint, sum of e <= sum of l.            (1)
//
// Admission: a frame that fits its own VXB (o + size <= b) is taken always. One
// that does not is taken if (1) holds with it, that is out of what is idle and
// lent by others at that moment.
//
// Reclaim: when an owner takes a frame, its l may shrink and break (1). Then
// frames are dropped from the tails of VXBs with e > 0, the one that began to
// borrow last first, until (1) holds (Reclaimed).
//
// Why an owner never loses a frame to a loan: a frame that fits its own VXB is
// taken by the first rule, and (1) can always be mended, because dropping all
// that is borrowed makes the left side 0. Memory suffices: with (1) the bytes
// held are sum of min(o,b) + e <= sum of min(o,b) + l <= sum of b <= b_ij
// (condition 4.2). Owners' frames within b are never dropped: a tail is only
// dropped while o > b.

// cross is the shared state of a crosspoint.
type cross struct {
	lent      int  // sum of e
	idle      int  // sum of l
	borrowers *vxb // e > 0, who began last first
}

func (x *vxb) excess() int { return max(0, x.bytes-x.size) }

func (x *vxb) idle() int { return min(x.lend, max(0, x.size-x.bytes)) }

// room says whether a frame of size bytes may be queued in x, and makes the
// room if others hold it on loan.
func (s *Switch) room(x *vxb, size int) bool {
	if x.bytes+size <= x.size {
		return true
	}
	if s.cfg.Sharing == Strict {
		return false
	}
	c := &s.crosses[x.cross]
	excess := x.bytes + size - x.size
	return c.lent-x.excess()+excess <= c.idle-x.idle()
}

// enter and leave bracket every change of a VXB's bytes, size or loan.

func (s *Switch) leave(x *vxb) {
	c := &s.crosses[x.cross]
	c.lent -= x.excess()
	c.idle -= x.idle()
}

func (s *Switch) enter(x *vxb) {
	c := &s.crosses[x.cross]
	c.lent += x.excess()
	c.idle += x.idle()
	if borrows := x.bytes > x.size && s.cfg.Sharing == Flexible; borrows != x.borrower {
		c.list(x, borrows)
	}
}

// list puts x on the list of borrowers or takes it off.
func (c *cross) list(x *vxb, on bool) {
	x.borrower = on
	if on {
		x.prev, x.next = nil, c.borrowers
		if x.next != nil {
			x.next.prev = x
		}
		c.borrowers = x
		return
	}
	if x.prev == nil {
		c.borrowers = x.next
	} else {
		x.prev.next = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	}
	x.prev, x.next = nil, nil
}

// reclaim drops borrowed tails until invariant (1) holds.
func (s *Switch) reclaim(cross int32) {
	c := &s.crosses[cross]
	for c.lent > c.idle && c.borrowers != nil {
		x := c.borrowers
		s.drop(x, x.tail, Reclaimed)
	}
}
