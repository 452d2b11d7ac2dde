package vxswitch

// Arrive takes a frame from physical port port through both lookups and
// queues it for every output they name. It returns the virtual switch that
// claims the frame, how many outputs it was queued for, and why it was dropped
// if that is 0 (of several causes, the last output's). p.In is filled in.
func (s *Switch) Arrive(now Time, port int, h *Header, p Packet) (id ID, queued int, why Cause) {
	id, ok := s.table.find(port, h)
	if !ok {
		s.unknown.refuse(p.Size, Unknown)
		return -1, 0, Unknown
	}
	queued, why = s.Forward(now, id, port, h, p)
	return id, queued, why
}

// Forward is Arrive for a driver that knows whose frame it is, because the
// real port belongs to one virtual switch only.
func (s *Switch) Forward(now Time, id ID, port int, h *Header, p Packet) (queued int, why Cause) {
	v := s.member(id)
	if v == nil {
		s.unknown.refuse(p.Size, Unknown)
		return 0, Unknown
	}
	in := v.portOn(port)
	if c := v.admit(now, in, p.Size, p.Due); c != None {
		return 0, c
	}
	p.In = int16(in)
	outs := v.forward(now, in, h)
	if outs.Empty() {
		v.ins[in].count.refuse(p.Size, NoRoute)
		return 0, NoRoute
	}
	return s.queueAll(now, v, outs, &p)
}

// forward asks the switch's own lookup.
func (v *virtual) forward(now Time, in int, h *Header) *PortSet {
	outs := &v.s.outs // one for all: what goes into an interface's call would be allocated
	*outs = PortSet{}
	if v.cfg.Lookup != nil {
		v.cfg.Lookup.Forward(now, in, h, outs)
	}
	return outs
}

// queueAll queues p for every output of outs.
func (s *Switch) queueAll(now Time, v *virtual, outs *PortSet, p *Packet) (queued int, why Cause) {
	for out := outs.Next(0); out >= 0; out = outs.Next(out + 1) {
		if c := s.queue(now, v, out, p); c != None {
			why = c
		} else {
			queued++
		}
	}
	return queued, why
}

// portOn is the port of v on physical port phys, or -1.
func (v *virtual) portOn(phys int) int {
	if phys < 0 || phys >= len(v.ports) {
		return -1
	}
	return int(v.ports[phys])
}

// Ready returns when a frame from port in of virtual switch id is within the
// port's capacity: a driver that can leave frames where they are waits until
// then instead of having them Policed.
func (s *Switch) Ready(id ID, in int) Time {
	v := s.member(id)
	if v == nil || in < 0 || in >= len(v.gates) || v.gates[in] != metered {
		return 0
	}
	return v.ins[in].bucket.next()
}
