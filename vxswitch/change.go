package vxswitch

import (
	"fmt"
	"slices"
)

// Change is one change of a running switch: Add, Set, Remove or SetPort.
type Change interface{ apply(*draft) error }

// Add hosts a new virtual switch.
type Add struct{ Virtual }

// Set gives the virtual switch of the same name a new description: ports,
// capacities, buffers, managers, schedulers, lookup, lifetime. Ports keep their
// index; one that goes leaves a hole (Physical -1), sends what is queued for it
// and takes nothing more.
type Set struct{ Virtual }

// Remove ends a virtual switch: it takes nothing more, what it has queued is
// sent, then its ID is free.
type Remove struct{ Name string }

// SetPort changes the host's scheduler, the rate or Capped of a physical port.
type SetPort struct {
	Port int
	PhysicalPort
}

// Apply makes all the changes at one instant, or none and says why. Queued
// frames stay queued, in order:
//
//   - a buffer made smaller than what it holds keeps it and takes nothing
//     until it fits;
//   - a new scheduler finds the queues as they are;
//   - loans are called back by the reclaim rule only (sharing.go).
//
// Whatever is not changed keeps its state.
func (s *Switch) Apply(now Time, changes ...Change) error {
	d := s.draft(now)
	for _, c := range changes {
		if err := c.apply(d); err != nil {
			return err
		}
	}
	if err := d.check(); err != nil {
		return err
	}
	s.commit(now, d)
	return nil
}

// Find returns the ID of the virtual switch called name.
func (s *Switch) Find(name string) (ID, bool) {
	id, ok := s.names[name]
	return id, ok
}

// Virtual returns the description of a virtual switch.
func (s *Switch) Virtual(id ID) (Virtual, bool) {
	v := s.member(id)
	if v == nil {
		return Virtual{}, false
	}
	return v.cfg, true
}

// IDs returns the virtual switches, also those that are being removed.
func (s *Switch) IDs() []ID {
	var ids []ID
	for i, v := range s.members {
		if v != nil {
			ids = append(ids, ID(i))
		}
	}
	return ids
}

// draft is what the switch would be.
type draft struct {
	s     *Switch
	now   Time
	ports []PhysicalPort
	list  []Virtual // in the order they were hosted
}

func (s *Switch) draft(now Time) *draft {
	d := &draft{s: s, now: now, ports: slices.Clone(s.cfg.Ports)}
	for _, v := range s.members {
		if v != nil && !v.gone {
			d.list = append(d.list, v.cfg)
		}
	}
	return d
}

func (d *draft) find(name string) int {
	return slices.IndexFunc(d.list, func(v Virtual) bool { return v.Name == name })
}

func (c Add) apply(d *draft) error {
	if d.find(c.Name) >= 0 {
		return fmt.Errorf("virtual switch %q is hosted already: use Set to change it", c.Name)
	}
	d.list = append(d.list, c.Virtual)
	return nil
}

func (c Set) apply(d *draft) error {
	i := d.find(c.Name)
	if i < 0 {
		return fmt.Errorf("no virtual switch %q to change", c.Name)
	}
	d.list[i] = c.Virtual
	return nil
}

func (c Remove) apply(d *draft) error {
	i := d.find(c.Name)
	if i < 0 {
		return fmt.Errorf("no virtual switch %q to remove", c.Name)
	}
	d.list = slices.Delete(d.list, i, i+1)
	return nil
}

func (c SetPort) apply(d *draft) error {
	if c.Port < 0 || c.Port >= len(d.ports) {
		return fmt.Errorf("no physical port %d: the switch has ports 0 to %d", c.Port, len(d.ports)-1)
	}
	d.ports[c.Port] = c.PhysicalPort
	return nil
}

// commit makes the switch what a checked draft says. It cannot fail.
func (s *Switch) commit(now Time, d *draft) {
	for i := range d.ports {
		s.outputs[i].set(now, d.ports[i])
		s.cfg.Ports[i] = d.ports[i]
	}
	for name, id := range s.names {
		if d.find(name) < 0 {
			s.retire(id)
		}
	}
	s.least = d.least()
	for _, v := range d.list {
		if id, ok := s.names[v.Name]; ok {
			s.members[id].set(now, v)
		} else {
			s.host(now, v)
		}
	}
	s.table = d.table()
	for _, o := range s.outputs {
		s.schedule(o)
	}
}

// host gives v the lowest free ID.
func (s *Switch) host(now Time, cfg Virtual) {
	id := ID(slices.Index(s.members, nil))
	v := &virtual{s: s, id: id}
	s.members[id], s.names[cfg.Name] = v, id
	v.set(now, cfg)
}

// retire lets a virtual switch drain.
func (s *Switch) retire(id ID) {
	v := s.members[id]
	delete(s.names, v.cfg.Name)
	v.gone = true
	for i := range v.outs {
		v.ins[i].phys, v.gates[i] = -1, shut
		v.outs[i].closed = true
		for in := range v.outs {
			v.at(in, i).set(s, 0, 0)
		}
	}
	v.reap()
}

// set changes a physical output.
func (o *output) set(now Time, p PhysicalPort) {
	old := o.s.cfg.Ports[o.port]
	if uint64(p.Out) != o.line.rate {
		o.line, o.wire = line{rate: uint64(p.Out)}, line{rate: uint64(p.Out)}
	}
	if !sameKind(p.Scheduler, old.Scheduler) {
		o.scheduler = p.Scheduler.New(len(o.members), o)
		for i := range o.members {
			if o.isAwake(i) {
				o.scheduler.Wake(i)
			}
		}
	}
	if p.Capped == o.capped {
		return
	}
	o.capped = p.Capped
	o.ready = max(o.ready, now)
	for i, m := range o.members {
		if m != nil {
			m.capped = p.Capped
			o.reconsider(i, m, now)
		}
	}
}

// reconsider wakes m, or lets it wait, after its cap was changed at now.
func (o *output) reconsider(i int, m *voutput, now Time) {
	if m.packets == 0 {
		return
	}
	m.picked = unasked
	o.ready = max(o.ready, now)
	if m.capped && m.bucket.next() > o.at() {
		o.sleep(i)
		o.waiting.set(i, m.bucket.next())
		return
	}
	o.wake(i)
}
