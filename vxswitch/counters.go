package vxswitch

// Count is a number of frames and their bytes.
type Count struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

func (c *Count) add(size int32) { c.Packets++; c.Bytes += uint64(size) }

// Plus returns the sum of both.
func (c Count) Plus(d Count) Count { return Count{c.Packets + d.Packets, c.Bytes + d.Bytes} }

// Counters are of a virtual switch, one of its crosspoints, or one of its
// ports. At all times Offered = Delivered + the sum of Dropped + Queued.
// A frame for several outputs is offered once for each.
type Counters struct {
	Offered   Count
	Delivered Count
	Queued    Count
	Dropped   [NumCauses]Count
	Faults    uint64 // picks of its schedulers that named nothing that can be sent, or took too long
}

// Lost returns all that was dropped.
func (c Counters) Lost() Count {
	var sum Count
	for _, d := range c.Dropped {
		sum = sum.Plus(d)
	}
	return sum
}

// Plus returns the sum of both.
func (c Counters) Plus(d Counters) Counters {
	c.Offered, c.Delivered, c.Queued = c.Offered.Plus(d.Offered), c.Delivered.Plus(d.Delivered), c.Queued.Plus(d.Queued)
	for i := range c.Dropped {
		c.Dropped[i] = c.Dropped[i].Plus(d.Dropped[i])
	}
	c.Faults += d.Faults
	return c
}

// Counters returns what virtual switch id has counted.
func (s *Switch) Counters(id ID) Counters {
	v := s.member(id)
	if v == nil {
		return Counters{}
	}
	sum := v.count
	for i := range v.ins {
		sum = sum.Plus(v.ins[i].count)
	}
	for i, x := range v.vxbs {
		sum = sum.Plus(x.count())
		if i < len(v.outs) {
			sum.Faults += v.outs[i].faults
		}
	}
	return sum
}

// Input returns what came in by a port of a virtual switch, also what reached
// no queue.
func (s *Switch) Input(id ID, port int) Counters {
	return s.sum(id, port, func(v *virtual, i int) Counters { return v.at(port, i).count() }, func(v *virtual) Counters { return v.ins[port].count })
}

// Output returns what was queued for, dropped before and sent by a port of a
// virtual switch.
func (s *Switch) Output(id ID, port int) Counters {
	return s.sum(id, port, func(v *virtual, i int) Counters { return v.at(i, port).count() }, func(v *virtual) Counters { return Counters{Faults: v.outs[port].faults} })
}

func (s *Switch) sum(id ID, port int, each func(*virtual, int) Counters, start func(*virtual) Counters) Counters {
	v := s.member(id)
	if v == nil || port < 0 || port >= len(v.outs) {
		return Counters{}
	}
	sum := start(v)
	for i := range v.outs {
		sum = sum.Plus(each(v, i))
	}
	return sum
}

// Crosspoint returns what was counted at one crosspoint of a virtual switch.
func (s *Switch) Crosspoint(id ID, in, out int) Counters {
	v := s.member(id)
	if v == nil || in < 0 || out < 0 || in >= len(v.outs) || out >= len(v.outs) {
		return Counters{}
	}
	return v.at(in, out).count()
}

// Total returns what the whole switch has counted: frames that nobody claimed,
// virtual switches that are gone, and those that live. Faults include those of
// hosts' schedulers.
func (s *Switch) Total() Counters {
	sum := s.unknown.Plus(s.past)
	sum.Faults += s.faults
	for _, id := range s.IDs() {
		sum = sum.Plus(s.Counters(id))
	}
	return sum
}

// Unknown returns what nobody claimed.
func (s *Switch) Unknown() Counters { return s.unknown }
