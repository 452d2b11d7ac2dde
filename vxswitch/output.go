package vxswitch

import "math/bits"

// output is a physical output: the host's scheduler over virtual switches and
// the line they share.
type output struct {
	s         *Switch
	port      int
	line      line // as it would be without loans: every decision is taken at its time
	free      Time // line is
	wire      line // what really carries frames; behind line by one longest frame at most
	wireFree  Time
	surplus   ring // VXBs with loans
	surplusAt Time // when the first of them may send, as far as known
	ready     Time // no decision before: a driver that calls late does not send into the past
	scheduler Scheduler
	capped    bool
	members   []*voutput // by ID; nil: the switch has no port here
	awake     []uint64   // IDs with something to send now
	nAwake    int
	waiting   timeHeap // IDs that may send again later: capped, or their scheduler waits
}

// The output shows its scheduler the virtual switches.

func (o *output) Backlog(i int) int  { return o.members[i].bytes }
func (o *output) Quantum(i int) int  { return o.members[i].quantum }
func (o *output) Priority(i int) int { return o.members[i].priority }

// Head is the frame that virtual switch i's own scheduler offers.
func (o *output) Head(i int) Packet { return *o.offered(i) }

// Size is the size of Head.
func (o *output) Size(i int) int { return int(o.offered(i).Size) }

func (o *output) offered(i int) *Packet {
	m := o.members[i]
	in := m.pick(o.at())
	if in == Nobody {
		return &noPacket
	}
	return m.head(in)
}

// at is when the output's next decision is taken if somebody is awake.
func (o *output) at() Time { return max(o.free, o.ready) }

// next is when the output has something to decide.
func (o *output) next() Time {
	if o.nAwake > 0 {
		return o.at()
	}
	t := Forever
	if _, at, ok := o.waiting.min(); ok {
		t = max(o.at(), at)
	}
	if o.surplus.size > 0 && o.surplusAt < Forever {
		t = min(t, max(o.at(), o.wireFree, o.surplusAt))
	}
	return t
}

func (o *output) isAwake(i int) bool { return o.awake[i>>6]>>(i&63)&1 != 0 }

func (o *output) wake(i int) {
	if o.isAwake(i) {
		return
	}
	o.waiting.remove(i)
	o.awake[i>>6] |= 1 << (i & 63)
	o.nAwake++
	o.scheduler.Wake(i)
}

func (o *output) sleep(i int) {
	if !o.isAwake(i) {
		return
	}
	o.awake[i>>6] &^= 1 << (i & 63)
	o.nAwake--
	o.scheduler.Sleep(i)
}

// arrived is told of a frame queued for virtual switch i.
func (o *output) arrived(i ID, now Time) {
	id, m := int(i), o.members[i]
	o.ready, o.surplusAt = max(o.ready, now), 0
	switch {
	case o.isAwake(id):
		o.scheduler.Changed(id)
	case m.capped && m.bucket.next() > now:
		o.waiting.set(id, m.bucket.next())
	default:
		o.wake(id)
	}
}

// lost is told that a queued frame of m was dropped.
func (o *output) lost(m *voutput) {
	id := int(m.v.id)
	if m.packets == 0 {
		o.sleep(id)
		o.waiting.remove(id)
	} else if o.isAwake(id) {
		o.scheduler.Changed(id)
	}
}

// decide lets the output send one frame at time t, its next().
func (o *output) decide(t Time, d *Departure) bool {
	o.ready = max(o.ready, t)
	o.wakeDue(t)
	for o.nAwake > 0 {
		m := o.members[o.choose(t)]
		in := m.pick(t)
		if in == Nobody {
			o.stall(m)
			continue
		}
		if o.s.keep(m, in, t) {
			o.send(m, in, t, d)
			return true
		}
	}
	if o.surplus.size > 0 && o.wireFree <= t {
		return o.sendSurplus(t, d)
	}
	return false
}

// wakeDue wakes those whose waiting is over at t.
func (o *output) wakeDue(t Time) {
	for {
		i, at, ok := o.waiting.min()
		if !ok || at > t {
			return
		}
		o.members[i].picked = unasked
		o.wake(i)
	}
}

// choose asks the host's scheduler, which is the provider's; a wrong answer
// of its is answered by the first that is awake.
func (o *output) choose(t Time) int {
	i := o.scheduler.Pick(t)
	if i >= 0 && i < len(o.members) && o.isAwake(i) {
		return i
	}
	o.s.faults++
	for w, m := range o.awake {
		if m != 0 {
			return w<<6 + bits.TrailingZeros64(m)
		}
	}
	return Nobody
}

// stall puts a switch aside whose own scheduler offers nothing: until its next
// frame, or the time it asked for.
func (o *output) stall(m *voutput) {
	id := int(m.v.id)
	o.sleep(id)
	if r, ok := m.scheduler.(Retrier); ok {
		if t := r.Retry(); t < Forever {
			o.waiting.set(id, max(t, o.ready+1))
		}
	}
}

// send lets m send from input in at t: the first own frame of the VXB is what
// was decided on, the frame that leaves may be a loan before it.
func (o *output) send(m *voutput, in int, t Time, d *Departure) {
	x := m.vxb(in)
	size := int(o.s.pool.nodes[x.first].Size)
	if o.free < t {
		o.line.rem = 0
	}
	o.free = t + o.line.take(size)
	o.depart(m, o.release(m, x, t), t, d)
	m.sent(in, size)
	o.scheduler.Sent(int(m.v.id), size+m.owed)
	m.owed = 0
	o.rest(m, t, size)
	m.v.drained(m)
}

// depart puts k on the wire, at t or when the wire is free.
func (o *output) depart(m *voutput, k *Packet, t Time, d *Departure) {
	if o.wireFree < t {
		o.wireFree, o.wire.rem = t, 0
	}
	start := o.wireFree
	o.wireFree += o.wire.take(int(k.Size))
	m.vxb(int(k.In)).sent.add(k.Size)
	if m.capped {
		m.real.pass(t, int(k.Size))
	}
	o.surplusAt = 0
	d.Packet = *k
	d.Switch, d.Port, d.Start, d.End = m.v.id, o.port, start, o.wireFree
}

// rest lets m sleep if it has nothing left or has reached its cap.
func (o *output) rest(m *voutput, t Time, size int) {
	id := int(m.v.id)
	if m.capped {
		m.bucket.pass(t, size)
	}
	if m.packets == 0 {
		o.sleep(id)
	} else if m.capped && m.bucket.next() > o.free {
		o.sleep(id)
		o.waiting.set(id, m.bucket.next())
	}
}
