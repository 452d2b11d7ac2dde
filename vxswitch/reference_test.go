package vxswitch_test

import (
	"math/big"
	"slices"

	"sublet/vxswitch"
)

// reference is one output of the switch as one would explain it: slices, scans, one
// round after another. It decides the same and is slow.
type reference struct {
	rate     int64
	maxFrame int
	flexible bool
	capped   bool
	host     *chooser
	vs       []*referenceSwitch

	line, wire referenceClock
	ready      vxswitch.Time
	order      uint64
	surplus    []*referenceQueue // with loans, in turn
	above      [][]*referenceQueue
	departed   []referenceDeparture
	dropped    map[uint64]vxswitch.Cause
}

type referenceDeparture struct {
	seq   uint64
	start vxswitch.Time
}

type referenceSwitch struct {
	t        *reference
	id       int
	choice   *chooser
	queues   []*referenceQueue
	out      int64
	burst    int64
	quantum  int
	priority int
	ownCap   referenceClock // of own frames
	realCap  referenceClock // of all frames
	credit   int
}

type referenceQueue struct {
	sw       *referenceSwitch
	in       int
	size     int
	lend     int
	quantum  int
	priority int
	manager  vxswitch.Manager
	frames   []*referenceFrame
}

type referenceFrame struct {
	arrival
	seq, order uint64
	loan       bool
}

// referenceClock is a line: it is free at base plus the exact time of sum bits.
type referenceClock struct {
	base vxswitch.Time
	bits int64
	rate int64
}

func (c referenceClock) free() vxswitch.Time {
	n := new(big.Int).Mul(big.NewInt(c.bits), big.NewInt(1e9))
	return c.base + vxswitch.Time(n.Div(n, big.NewInt(c.rate)).Int64())
}

func (c *referenceClock) send(t vxswitch.Time, size int) {
	if c.free() < t {
		c.base, c.bits = t, 0
	}
	c.bits += int64(size) * 8
}

func (c referenceClock) slack(burst int64) vxswitch.Time {
	return referenceClock{bits: burst * 8, rate: c.rate}.free()
}

func (q *referenceQueue) own() (own []*referenceFrame) {
	for _, f := range q.frames {
		if !f.loan {
			own = append(own, f)
		}
	}
	return own
}

func bytesOf(frames []*referenceFrame) (sum int) {
	for _, f := range frames {
		sum += int(f.size)
	}
	return sum
}

func (q *referenceQueue) held() int { return bytesOf(q.frames) }
func (q *referenceQueue) e() int    { return max(0, q.held()-q.size) }
func (q *referenceQueue) l() int    { return min(q.lend, max(0, q.size-q.held())) }
func (s *referenceSwitch) own() (all []*referenceFrame) {
	for _, q := range s.queues {
		all = append(all, q.own()...)
	}
	return all
}

// sums are the two sides of invariant (1) at the crosspoint of input in.
func (t *reference) sums(in int) (e, l int) {
	for _, s := range t.vs {
		e += s.queues[in].e()
		l += s.queues[in].l()
	}
	return e, l
}

func (t *reference) arrive(a arrival, seq uint64) {
	for t.decide(a.at) {
	}
	q := t.vs[a.vs].queues[a.in]
	own := q.own()
	if !q.manager.Accept(a.at, vxswitch.Occupancy{Bytes: bytesOf(own), Packets: len(own), Limit: q.size}, int(a.size)) {
		t.dropped[seq] = vxswitch.Early
		return
	}
	f := &referenceFrame{arrival: a, seq: seq, loan: bytesOf(own)+int(a.size) > q.size}
	if f.loan && !t.lends(q, int(a.size)) {
		t.dropped[seq] = vxswitch.Full
		return
	}
	t.order++
	f.order = t.order
	q.frames = append(q.frames, f)
	t.ready = max(t.ready, a.at)
	t.note(q)
	if f.loan {
		return
	}
	t.reclaim(a.in)
	q.sw.choice.join(a.in)
	if q.sw.may(q.sw.ownCap) <= a.at {
		t.host.join(a.vs)
	}
}

func (t *reference) lends(q *referenceQueue, size int) bool {
	e, l := t.sums(q.in)
	return t.flexible && e-q.e()+q.held()+size-q.size <= l-q.l()
}

// note keeps the two lists: who has loans, in turn, and who is above its size,
// the last to get there last.
func (t *reference) note(q *referenceQueue) {
	loans := len(q.own()) < len(q.frames)
	t.surplus = keepIn(t.surplus, q, loans)
	t.above[q.in] = keepIn(t.above[q.in], q, loans && q.e() > 0)
}

func keepIn(list []*referenceQueue, q *referenceQueue, in bool) []*referenceQueue {
	i := slices.Index(list, q)
	if in && i < 0 {
		return append(list, q)
	}
	if !in && i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

func (t *reference) reclaim(in int) {
	for e, l := t.sums(in); e > l; e, l = t.sums(in) {
		q := t.above[in][len(t.above[in])-1]
		for i := len(q.frames) - 1; ; i-- {
			if q.frames[i].loan {
				t.drop(q, i, vxswitch.Reclaimed)
				break
			}
		}
	}
}

func (t *reference) drop(q *referenceQueue, i int, why vxswitch.Cause) {
	t.dropped[q.frames[i].seq] = why
	q.frames = slices.Delete(q.frames, i, i+1)
	t.note(q)
}

// may is when the cap c lets s send.
func (s *referenceSwitch) may(c referenceClock) vxswitch.Time {
	if !s.t.capped {
		return 0
	}
	return c.free() - c.slack(s.burst)
}

// now is the earliest time of a decision.
func (t *reference) now() vxswitch.Time { return max(t.line.free(), t.ready) }

// next is when something can be sent, and whether it is an own frame's turn.
func (t *reference) next() (at vxswitch.Time, own bool) {
	if len(t.host.list) > 0 {
		return t.now(), true
	}
	at = vxswitch.Forever
	for _, s := range t.vs {
		if may := max(t.now(), s.may(s.ownCap)); len(s.own()) > 0 && may < at {
			at, own = may, true
		}
	}
	for _, q := range t.surplus {
		if may := max(t.now(), t.wire.free(), q.sw.may(q.sw.realCap)); q.frames[0].loan && may < at {
			at, own = may, false
		}
	}
	return at, own
}

// decide takes the next decision if it is due by until.
func (t *reference) decide(until vxswitch.Time) bool {
	at, _ := t.next()
	if at > until || at == vxswitch.Forever {
		return false
	}
	t.ready = max(t.ready, at)
	t.admitDue(at)
	for len(t.host.list) > 0 {
		s := t.vs[t.host.pick()]
		q := s.queues[s.choice.pick()]
		if t.sendOwn(s, q, at) {
			return true
		}
	}
	if t.wire.free() <= at {
		t.sendSurplus(at)
	}
	return true
}

// admitDue lets switches take part whose cap allows it again, the earliest first.
func (t *reference) admitDue(at vxswitch.Time) {
	var due []*referenceSwitch
	for _, s := range t.vs {
		if !t.host.has(s.id) && len(s.own()) > 0 && s.may(s.ownCap) <= at {
			due = append(due, s)
		}
	}
	slices.SortStableFunc(due, func(a, b *referenceSwitch) int { return int(a.may(a.ownCap) - b.may(b.ownCap)) })
	for _, s := range due {
		t.host.join(s.id)
	}
}

// sendOwn sends for the first own frame of q, or drops it if the manager says so.
func (t *reference) sendOwn(s *referenceSwitch, q *referenceQueue, at vxswitch.Time) bool {
	own := q.own()
	first := own[0]
	sent := q.manager.Keep(at, first.at, vxswitch.Occupancy{Bytes: bytesOf(own), Packets: len(own), Limit: q.size}, int(first.size))
	if sent {
		t.line.send(at, int(first.size))
		t.putOnWire(s, q, t.release(s, q, first, at), at)
		s.choice.sent(q.in, int(first.size))
		t.host.sent(s.id, int(first.size))
		s.ownCap.send(at, int(first.size))
	} else {
		t.drop(q, slices.Index(q.frames, first), vxswitch.Late)
	}
	if len(q.own()) == 0 {
		s.choice.leave(q.in)
	}
	if len(s.own()) == 0 || sent && s.may(s.ownCap) > t.line.free() {
		t.host.leave(s.id)
	}
	return sent
}

// release says which frame leaves in the place of first.
func (t *reference) release(s *referenceSwitch, q *referenceQueue, first *referenceFrame, at vxswitch.Time) *referenceFrame {
	for q.frames[0] != first {
		more := int(q.frames[0].size) - int(first.size)
		late := t.wire
		late.send(at, int(q.frames[0].size))
		if more == 0 || more < 0 && s.credit >= -more ||
			more > 0 && late.free()-t.line.free() <= (referenceClock{bits: int64(t.maxFrame) * 8, rate: t.rate}).free() {
			s.credit += more
			first.loan = true
			break
		}
		t.drop(q, 0, vxswitch.Reclaimed)
	}
	return q.frames[0]
}

func (t *reference) putOnWire(s *referenceSwitch, q *referenceQueue, f *referenceFrame, at vxswitch.Time) {
	t.departed = append(t.departed, referenceDeparture{f.seq, max(at, t.wire.free())})
	t.wire.send(at, int(f.size))
	s.realCap.send(at, int(f.size))
	q.frames = q.frames[1:]
	t.note(q)
}

// sendSurplus gives each queue with loans a turn until one can send.
func (t *reference) sendSurplus(at vxswitch.Time) {
	for range t.surplus {
		q := t.surplus[0]
		t.surplus = append(t.surplus[1:], q)
		if q.frames[0].loan && q.sw.may(q.sw.realCap) <= at {
			q.sw.credit += int(q.frames[0].size)
			t.putOnWire(q.sw, q, q.frames[0], at)
			return
		}
	}
}

// chooser is every scheduler, over a list of those that take part; whose turn
// is next stands first.
type chooser struct {
	kind                             string
	size, backlog, quantum, priority func(int) int
	order                            func(int) uint64
	list                             []int
	deficit                          map[int]int
	granted                          bool
	served                           map[int]int
	turns                            int
}

func (c *chooser) has(i int) bool { return slices.Contains(c.list, i) }

func (c *chooser) join(i int) {
	if !c.has(i) {
		c.list = append(c.list, i)
	}
}

func (c *chooser) leave(i int) {
	at := slices.Index(c.list, i)
	if at < 0 {
		return
	}
	if at == 0 {
		c.granted = false
	}
	c.list = slices.Delete(c.list, at, at+1)
	c.deficit[i] = min(c.deficit[i], 0)
}

func (c *chooser) back(i int) {
	at := slices.Index(c.list, i)
	c.list = append(slices.Delete(c.list, at, at+1), i)
}

func (c *chooser) pick() int {
	switch c.kind {
	case "drr":
		for {
			i := c.list[0]
			if !c.granted {
				c.deficit[i] += c.quantum(i)
				c.granted = true
			}
			if c.size(i) <= c.deficit[i] {
				return i
			}
			c.back(i)
			c.granted = false
		}
	case "rr":
		return c.list[0]
	case "sp":
		return c.best(func(i int) [3]int { return [3]int{c.priority(i)} })
	case "fcfs":
		return c.best(func(i int) [3]int { return [3]int{int(c.order(i))} })
	default:
		return c.best(func(i int) [3]int { return [3]int{-c.backlog(i), c.served[i], i} })
	}
}

// best is the first in the list with the smallest rank.
func (c *chooser) best(rank func(int) [3]int) int {
	best := c.list[0]
	for _, i := range c.list {
		if a, b := rank(i), rank(best); slices.Compare(a[:], b[:]) < 0 {
			best = i
		}
	}
	return best
}

func (c *chooser) sent(i, size int) {
	c.deficit[i] -= size
	c.turns++
	c.served[i] = c.turns
	if c.kind == "rr" || c.kind == "sp" {
		c.back(i)
	}
}
