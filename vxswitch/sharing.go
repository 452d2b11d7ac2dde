package vxswitch

// Flexible sharing of a crosspoint's memory, and why it never loses more.
//
// # Rule
//
// Call a VXB's frames its own or loans. VXB k has size b and lends up to
// L = Lend·b; it holds g bytes of its own and y on loan, o = g + y. It is above
// its size by e = max(0, o-b), and has idle to lend l = min(L, max(0, b-o)).
//
//	At every crosspoint: sum of e <= sum of l.                         (1)
//
//   - A frame that fits beside the VXB's own ones (g + size <= b) is taken, as
//     its own, always.
//   - Any other is taken as a loan if (1) holds with it, else dropped (Full).
//   - Reclaim: when taking an own frame breaks (1), the youngest loans of
//     VXBs above their size are dropped (Reclaimed), of the one that got there
//     last first, until (1) holds.
//   - Queue managers and schedulers see own frames only, and decide at the
//     times of a line that carries own frames only: exactly what they would
//     see and when under Strict.
//   - When first, the oldest own frame of a VXB, is to be sent and a loan is
//     older (frames leave a VXB in order), the loan goes in its place and
//     first becomes a loan instead, if the two have one size, or the switch's
//     credit at this output covers what the loan is shorter, or the wire stays
//     within one longest frame of the line though the loan is longer. Credit
//     is what it sent above its own frames. Otherwise the loan is dropped.
//   - When the line is idle and the wire free, loans at the head of their VXBs
//     are sent, one frame from each in turn.
//
// # An owner never loses a frame to a loan
//
// A frame with g + size <= b is always taken. (1) can always be mended: while
// a VXB is above its size some of it is on loan (g <= b), and without loans
// every e is 0. Memory suffices: what is held is the sum of min(o, b) + e <=
// sum of min(o, b) + l <= sum of b <= b_ij (condition 4.2).
//
// # Flexible never loses more than Strict on the same arrivals
//
// At any time the own frames in all VXBs are those that would be queued under
// Strict: taking (g is Strict's occupancy), managers, schedulers and the line
// see nothing else, and a frame leaves the own ones, sent or turned into a
// loan, when Strict would send it. Hence every time Strict drops a frame this
// switch makes at most one loan of it, every swap leaves the number of loans as
// it is, and only loans are dropped beyond what managers drop in both. So for
// every virtual switch, output and instant, frames dropped are at most
// Strict's. Bytes: a swap for a shorter loan is paid from credit, which is what
// was sent in excess, so bytes sent in the place of own frames and in surplus
// are never less than Strict's, and what is neither sent nor queued is no more.
//
// Price: a frame that Strict sends at t leaves at most one longest frame later,
// after the loan that was on the wire or took longer. It has left its VXB then
// and waits in the output's register, which holds two longest frames.
//
// Switches whose scheduler waits (Retrier) borrow nothing: a loan sent in
// surplus would pass by the scheduler.

// cross is the shared state of a crosspoint.
type cross struct {
	above int  // sum of e
	idle  int  // sum of l
	list  ring // VXBs with e > 0
}

func (x *vxb) above() int { return max(0, x.held()-x.size) }

func (x *vxb) idle() int { return min(x.lend, max(0, x.size-x.held())) }

// fitsCrosspoint says whether a frame of size bytes may be queued in x, and whether as a
// loan.
func (s *Switch) fitsCrosspoint(x *vxb, size int) (ok, loan bool) {
	if x.bytes+size <= x.size {
		return true, false
	}
	if s.cfg.Sharing == Strict || s.members[x.id].outs[x.out].waits {
		return false, false
	}
	c := &s.crosses[x.cross]
	above := x.held() + size - x.size
	return c.above-x.above()+above <= c.idle-x.idle(), true
}

// leave and enter bracket every change of what a VXB holds, may hold or lends.

func (s *Switch) leave(x *vxb) {
	if s.cfg.Sharing == Strict { // nobody asks
		return
	}
	c := &s.crosses[x.cross]
	c.above -= x.above()
	c.idle -= x.idle()
}

func (s *Switch) enter(x *vxb) {
	if s.cfg.Sharing == Strict {
		return
	}
	c := &s.crosses[x.cross]
	c.above += x.above()
	c.idle += x.idle()
	c.list.set(x, x.loaned > 0 && x.above() > 0)
}

// reclaim drops loans until (1) holds.
func (s *Switch) reclaim(cross int32) {
	if s.cfg.Sharing == Strict {
		return
	}
	c := &s.crosses[cross]
	for c.above > c.idle && c.list.size > 0 {
		x := c.list.last()
		s.drop(x, x.last, Reclaimed)
	}
}

// release takes the frame out of x that leaves now that the first own one is
// to be sent.
func (o *output) release(m *voutput, x *vxb, t Time) *Packet {
	s := o.s
	for x.head != x.first {
		if o.swap(m, int(s.pool.nodes[x.head].Size), int(s.pool.nodes[x.first].Size), t) {
			s.leave(x)
			s.pool.lend(x)
			m.loans++
			s.enter(x)
			return s.unqueue(x, x.head)
		}
		s.drop(x, x.head, Reclaimed)
	}
	return s.unqueue(x, x.first)
}

// swap says whether a loan may leave in the place of an own frame, and keeps
// the credit. o.free has the own frame on the line already.
func (o *output) swap(m *voutput, loan, own int, t Time) bool {
	more := loan - own
	if more < 0 && m.credit < -more {
		return false
	}
	if more > 0 {
		w := o.wire
		end := max(o.wireFree, t) + w.take(loan)
		longest := line{rate: w.rate}
		if end-o.free > longest.take(int(o.s.cfg.MaxFrame)) {
			return false
		}
	}
	m.credit += more
	return true
}

// sendSurplus sends the next loan at the head of its VXB, at t.
func (o *output) sendSurplus(t Time, d *Departure) bool {
	soonest := Forever
	for range o.surplus.size {
		x := o.surplus.at
		o.surplus.at = x.surplus.next
		m := o.members[x.id]
		if x.head == x.first {
			continue
		}
		if m.capped && m.real.next() > t {
			soonest = min(soonest, m.real.next())
			continue
		}
		k := o.s.unqueue(x, x.head)
		m.credit = min(m.credit+int(k.Size), maxCredit)
		o.depart(m, k, t, d)
		m.v.drained(m)
		return true
	}
	o.surplusAt = soonest
	return false
}

// maxCredit keeps the sum from overflowing; it is far above any difference of
// two frames.
const maxCredit = 1 << 40
