package vxswitch

import (
	"reflect"
	"slices"
)

// sameKind says whether two kinds are the same choice, so that its state stays.
func sameKind(a, b any) bool { return reflect.DeepEqual(a, b) }

// set makes v what cfg says, which is checked. What is queued stays.
func (v *virtual) set(now Time, cfg Virtual) {
	old := v.cfg
	v.cfg = cfg
	v.grow(len(cfg.Ports))
	for i := range cfg.Ports {
		v.setInput(i, old)
		v.setOutput(now, i, old)
	}
	for in := range cfg.Ports {
		for out := range cfg.Ports {
			v.setCrosspoint(in, out)
		}
	}
	v.ports = make([]int16, len(v.s.outputs))
	for i := range v.ports {
		v.ports[i] = int16(slices.IndexFunc(cfg.Ports, func(p Port) bool { return p.Physical == i }))
	}
	v.reap()
}

// grow gives v n ports if it has fewer. The queues move with their contents.
func (v *virtual) grow(n int) {
	if n <= len(v.outs) {
		return
	}
	had := len(v.outs)
	all := make([]vxb, n*n)
	grid := make([]*vxb, n*n)
	for out := range n {
		for in := range n {
			if in < had && out < had {
				grid[out*n+in] = v.at(in, out)
				continue
			}
			x := &all[out*n+in]
			x.id, x.in, x.out, x.cross = int32(v.id), int16(in), int16(out), -1
			grid[out*n+in] = x
		}
	}
	v.vxbs = grid
	for i := had; i < n; i++ {
		v.ins, v.gates = append(v.ins, vinput{phys: -1}), append(v.gates, shut)
		v.outs = append(v.outs, &voutput{v: v, out: i, phys: -1, picked: unasked, closed: true})
	}
}

func (v *virtual) setInput(i int, old Virtual) {
	p, in := v.cfg.Ports[i], &v.ins[i]
	fresh := in.phys < 0
	in.phys, v.gates[i] = p.Physical, shut
	if p.Physical < 0 {
		return
	}
	if v.gates[i] = open; !p.Police {
		return
	}
	v.gates[i] = metered
	if fresh || !old.Ports[i].Police {
		in.bucket = newBucket(p.In, v.inBurst(p))
	} else if old.Ports[i].In != p.In || old.Ports[i].InBurst != p.InBurst {
		in.bucket.reset(p.In, v.inBurst(p))
	}
}

func (v *virtual) setOutput(now Time, i int, old Virtual) {
	p, m := v.cfg.Ports[i], v.outs[i]
	if p.Physical < 0 {
		m.closed = true
		return
	}
	fresh := m.phys < 0
	m.closed = false
	o := v.s.outputs[p.Physical]
	if fresh {
		m.phys = p.Physical
		o.members[v.id] = m
		m.bucket = newBucket(p.Out, v.outBurst(p))
		m.real = m.bucket
		m.capped = o.capped
	} else if old.Ports[i].Out != p.Out || old.Ports[i].OutBurst != p.OutBurst {
		m.bucket.reset(p.Out, v.outBurst(p))
		m.real.reset(p.Out, v.outBurst(p))
		o.reconsider(int(v.id), m, now)
	}
	m.weigh(o, v.hostQuantum(p), p.Priority)
	if fresh || m.entries < len(v.outs) || !sameKind(p.Scheduler, old.Ports[i].Scheduler) {
		m.install(p.Scheduler)
	}
}

// weigh sets what the host's scheduler goes by. A scheduler may have filed an
// awake entry under its priority, so it is taken out and put back.
func (m *voutput) weigh(o *output, quantum, priority int) {
	if m.quantum == quantum && m.priority == priority {
		return
	}
	id := int(m.v.id)
	awake := o.isAwake(id)
	if awake {
		o.scheduler.Sleep(id)
	}
	m.quantum, m.priority = quantum, priority
	if awake {
		o.scheduler.Wake(id)
	}
}

// install gives m a new scheduler, which finds the queues as they are.
func (m *voutput) install(kind SchedulerKind) {
	g := &guard{o: m}
	m.picked, m.scheduler, m.entries = unasked, g, len(m.v.outs)
	g.make(kind, len(m.v.outs))
	_, m.waits = g.inner.(Retrier)
	if _, bounded := kind.(Bounded); bounded && !g.broken {
		m.scheduler = g.inner // the provider's own: believed, but for what ask checks
	}
	for i := m.awake.Next(0); i >= 0; i = m.awake.Next(i + 1) {
		m.scheduler.Wake(i)
	}
}

func (v *virtual) setCrosspoint(in, out int) {
	x, m := v.at(in, out), v.outs[out]
	c := v.cfg.crosspoint(in, out)
	if v.ins[in].phys < 0 || m.closed {
		x.set(v.s, 0, 0)
		return
	}
	x.place(v.s, int32(v.ins[in].phys*len(v.s.outputs)+m.phys))
	x.set(v.s, int(c.Size), int(float64(c.Size)*c.Lend))
	x.weigh(m, quantumOr(int(c.Quantum), int(v.s.cfg.MaxFrame)), c.Priority)
	if !sameKind(c.Manager, x.kind) {
		x.kind, x.manager = c.Manager, nil
		if c.Manager != nil {
			x.manager = c.Manager.New(int(c.Size), int64(v.cfg.Ports[out].Out), v.s.seedOf(x))
		}
	}
}

// weigh is voutput.weigh one level down.
func (x *vxb) weigh(m *voutput, quantum, priority int) {
	if x.quantum == quantum && x.priority == int32(priority) {
		return
	}
	i := int(x.in)
	if m.awake.Has(i) {
		m.scheduler.Sleep(i)
	}
	x.quantum, x.priority = quantum, int32(priority)
	if m.awake.Has(i) {
		m.picked = unasked
		m.scheduler.Wake(i)
	}
}

// place puts x at a physical crosspoint. It is empty unless it is there already.
func (x *vxb) place(s *Switch, cross int32) {
	if x.cross == cross {
		return
	}
	if x.cross >= 0 {
		s.leave(x)
	}
	x.cross = cross
	s.enter(x)
}

// set resizes x. What it holds within its old size stays its own until sent.
func (x *vxb) set(s *Switch, size, lend int) {
	if x.cross < 0 {
		return
	}
	s.leave(x)
	x.want, x.lend = size, min(lend, size)
	x.size = max(size, min(x.size, x.bytes))
	s.enter(x)
}

// seedOf is different for every VXB and the same in every run.
func (s *Switch) seedOf(x *vxb) uint64 {
	return s.cfg.Seed ^ uint64(x.id)<<40 ^ uint64(x.in)<<20 ^ uint64(x.out)
}

func quantumOr(q, otherwise int) int {
	if q > 0 {
		return q
	}
	return otherwise
}
