package vxswitch

import (
	"slices"

	"sublet/vnet"
)

// Switch is a physical switch with the virtual switches it hosts. It is not
// safe for concurrent use.
type Switch struct {
	cfg     Config
	outputs []*output
	byTime  timeHeap // outputs by next decision
	crosses []cross  // [in*N+out]
	members []*virtual
	names   map[string]ID
	pool    pool
	order   uint64
	table   table
	outs    PortSet     // of the frame that is being forwarded
	unknown Counters    // of frames that nobody claims
	past    Counters    // of switches that are gone
	faults  uint64      // of hosts' schedulers
	least   []vnet.Rate // smallest Out leased of each physical output
}

// New returns a switch that hosts nobody.
func New(cfg Config) (*Switch, error) {
	cfg.Ports = slices.Clone(cfg.Ports) // SetPort changes them
	if err := cfg.check(); err != nil {
		return nil, err
	}
	n := len(cfg.Ports)
	s := &Switch{
		cfg: cfg, byTime: newTimeHeap(n), crosses: make([]cross, n*n),
		members: make([]*virtual, cfg.MaxSwitches), names: map[string]ID{},
		pool: pool{nodes: make([]node, 1)},
	}
	for i := range s.crosses {
		s.crosses[i].list.place = borrowPlace
	}
	for i := range cfg.Ports {
		s.outputs = append(s.outputs, s.newOutput(i))
	}
	return s, nil
}

func (s *Switch) newOutput(i int) *output {
	p := s.cfg.Ports[i]
	o := &output{
		s: s, port: i, line: line{rate: uint64(p.Out)}, wire: line{rate: uint64(p.Out)}, capped: p.Capped,
		surplus: ring{place: surplusPlace},
		members: make([]*voutput, s.cfg.MaxSwitches),
		awake:   make([]uint64, (s.cfg.MaxSwitches+63)/64),
		waiting: newTimeHeap(s.cfg.MaxSwitches),
	}
	o.scheduler = p.Scheduler.New(s.cfg.MaxSwitches, o)
	return o
}

// Next returns when the next frame can depart, Forever if none is queued. A
// Depart then may still find none: a scheduler may decide to wait.
func (s *Switch) Next() Time {
	_, t, _ := s.byTime.min()
	return t
}

// Depart lets the output whose decision is due first, at or before until, send
// one frame; ok is false if nothing departs by then.
func (s *Switch) Depart(until Time) (d Departure, ok bool) {
	ok = s.DepartInto(&d, until)
	return d, ok
}

// DepartInto is Depart for a driver in a hurry: it says where the departure is
// written, which is not copied then. What is there if nothing departs is
// undefined.
func (s *Switch) DepartInto(d *Departure, until Time) bool {
	for {
		i, t, any := s.byTime.min()
		if !any || t > until {
			return false
		}
		o := s.outputs[i]
		ok := o.decide(t, d)
		s.schedule(o)
		if ok {
			return true
		}
	}
}

// DepartFrom is DepartInto for one physical output.
func (s *Switch) DepartFrom(port int, d *Departure, until Time) bool {
	o := s.outputs[port]
	for t := o.next(); t <= until && t < Forever; t = o.next() {
		ok := o.decide(t, d)
		s.schedule(o)
		if ok {
			return true
		}
	}
	return false
}

// schedule puts o where its next decision belongs.
func (s *Switch) schedule(o *output) {
	if t := o.next(); t < Forever {
		s.byTime.set(o.port, t)
	} else {
		s.byTime.remove(o.port)
	}
}

// Enqueue queues a frame that came in by port p.In of virtual switch id, to
// its port out: a frame's way after both lookups. It returns why the frame was
// dropped, None if it was queued. now must not go backwards.
func (s *Switch) Enqueue(now Time, id ID, out int, p Packet) Cause {
	v := s.member(id)
	if v == nil {
		s.unknown.refuse(p.Size, Unknown)
		return Unknown
	}
	if c := v.admit(now, int(p.In), p.Size, p.Due); c != None {
		return c
	}
	return s.queue(now, v, out, &p)
}

func (s *Switch) member(id ID) *virtual {
	if id < 0 || int(id) >= len(s.members) {
		return nil
	}
	return s.members[id]
}

// queue is what happens at the crosspoint.
func (s *Switch) queue(now Time, v *virtual, out int, p *Packet) Cause {
	in := int(p.In)
	if !v.reaches(in, out) {
		v.ins[in].count.refuse(p.Size, Unreachable)
		return Unreachable
	}
	x := v.at(in, out)
	loan, c := s.fits(now, x, int(p.Size))
	if c != None {
		x.dropped[c].add(p.Size)
		return c
	}
	s.order++
	p.Order, p.At, p.Out = s.order, now, int16(out)
	s.insert(now, v, x, p, loan)
	return None
}

// fits asks the queue manager, then looks for room.
func (s *Switch) fits(now Time, x *vxb, size int) (loan bool, why Cause) {
	if size > int(s.cfg.MaxFrame) || size <= 0 {
		return false, Full
	}
	if x.manager != nil && !x.manager.Accept(now, x.occupancy(), size) {
		return false, Early
	}
	ok, loan := s.fitsCrosspoint(x, size)
	if !ok {
		return false, Full
	}
	return loan, None
}

// insert queues p in x and tells both schedulers of an own frame.
func (s *Switch) insert(now Time, v *virtual, x *vxb, p *Packet, loan bool) {
	m := v.outs[x.out]
	o := s.outputs[m.phys]
	s.leave(x)
	s.pool.push(x, p, loan)
	s.enter(x)
	if loan {
		m.loans++
		o.surplus.set(x, true)
		o.ready, o.surplusAt = max(o.ready, now), 0
	} else {
		s.reclaim(x.cross)
		m.added(int(x.in), int(p.Size))
		o.arrived(v.id, now)
	}
	s.schedule(o)
}

// unqueue takes node n, the first own frame or a loan, out of x. Its packet
// stays readable until the next frame is queued.
func (s *Switch) unqueue(x *vxb, n uint32) *Packet {
	loan := s.pool.nodes[n].loan
	s.leave(x)
	k := s.pool.cut(x, n)
	x.size = max(x.want, min(x.size, x.bytes))
	s.enter(x)
	m := s.members[x.id].outs[x.out]
	if loan {
		m.loans--
	}
	if m.loans > 0 || loan {
		s.outputs[m.phys].surplus.set(x, x.loaned > 0)
	}
	return k
}

// drop drops a queued frame.
func (s *Switch) drop(x *vxb, n uint32, why Cause) {
	loan := s.pool.nodes[n].loan
	k := s.unqueue(x, n)
	x.dropped[why].add(k.Size)
	v := s.members[x.id]
	m := v.outs[x.out]
	o := s.outputs[m.phys]
	if !loan {
		m.dropped(int(x.in), int(k.Size))
		o.lost(m)
	}
	s.schedule(o)
	v.drained(m)
	if s.cfg.Dropped != nil {
		s.cfg.Dropped(ID(x.id), *k, why)
	}
}

// keep asks the queue manager whether the head of input in of m is sent, and
// drops it if not.
func (s *Switch) keep(m *voutput, in int, now Time) bool {
	x := m.vxb(in)
	if x.manager == nil {
		return true
	}
	k := &s.pool.nodes[x.first].Packet
	if x.manager.Keep(now, k.At, x.occupancy(), int(k.Size)) {
		return true
	}
	s.drop(x, x.first, Late)
	return false
}

// refuse counts a frame that reached no queue.
func (c *Counters) refuse(size int32, why Cause) {
	c.Offered.add(size)
	c.Dropped[why].add(size)
}

// Config returns what the switch was made of, with the defaults filled in.
func (s *Switch) Config() Config { return s.cfg }

// Rate returns the rate of a physical output.
func (s *Switch) Rate(port int) vnet.Rate { return vnet.Rate(s.outputs[port].line.rate) }
