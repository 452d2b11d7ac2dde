package vxswitch

import (
	"fmt"
	"slices"

	"sublet/vnet"
)

// Rejection says which of the conditions 4.1 and 4.2 (Anhalt, thesis, section 4.3.3) does not
// hold, where and when, and how much is free there.
type Rejection struct {
	Switch       string
	Resource     string // "input capacity of port 3", "memory of crosspoint 0-1"
	At           Time   // the instant at which most is booked
	Asked, Free  int64  // bit/s or bytes
	CapacityBits bool   // bit/s
}

func (r *Rejection) Error() string {
	unit := "bytes"
	if r.CapacityBits {
		unit = "bit/s"
	}
	return fmt.Sprintf("virtual switch %q asks %d %s of %s, where %d are free at %d ns: ask for less, or for another time",
		r.Switch, r.Asked, unit, r.Resource, r.Free, r.At)
}

// Admit says whether virtual switches with these lifetimes can share a switch
// made of c: nil, a *Rejection of the first in order that does not fit, or
// what else is wrong. At no instant may the sums over those that live exceed a
// port's capacity (4.1) or a crosspoint's memory (4.2).
func Admit(c Config, list []Virtual) error {
	c.Ports = slices.Clone(c.Ports)
	if err := c.check(); err != nil {
		return err
	}
	return (&c).admit(list, -Forever)
}

// admit checks every instant from now on at which a lifetime begins: booked
// sums rise nowhere else.
func (c *Config) admit(list []Virtual, now Time) error {
	for i := range list {
		if err := list[i].check(c); err != nil {
			return err
		}
	}
	for _, t := range beginnings(list, now) {
		b := newBooking(c, t)
		for i := range list {
			if v := &list[i]; v.From <= t && t < v.until() {
				if r := b.add(v); r != nil {
					return r
				}
			}
		}
	}
	return nil
}

// beginnings are the different instants from now on at which one of list begins.
func beginnings(list []Virtual, now Time) []Time {
	var at []Time
	for _, v := range list {
		at = append(at, max(v.From, now))
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// booking sums what is booked at one instant.
type booking struct {
	c       *Config
	at      Time
	in, out []vnet.Rate
	memory  []vnet.Bytes
}

func newBooking(c *Config, at Time) *booking {
	n := len(c.Ports)
	return &booking{c: c, at: at, in: make([]vnet.Rate, n), out: make([]vnet.Rate, n), memory: make([]vnet.Bytes, n*n)}
}

func (b *booking) add(v *Virtual) error {
	for _, p := range v.Ports {
		if p.Physical < 0 {
			continue
		}
		phys := b.c.Ports[p.Physical]
		if err := b.rate(v, "input", p.Physical, &b.in[p.Physical], p.In, phys.In); err != nil {
			return err
		}
		if err := b.rate(v, "output", p.Physical, &b.out[p.Physical], p.Out, phys.Out); err != nil {
			return err
		}
	}
	return b.addBuffers(v)
}

// rate is condition 4.1.
func (b *booking) rate(v *Virtual, dir string, port int, sum *vnet.Rate, asked, of vnet.Rate) error {
	if *sum+asked > of {
		return &Rejection{Switch: v.Name, Resource: fmt.Sprintf("%s capacity of port %d", dir, port), At: b.at, Asked: int64(asked), Free: int64(of - *sum), CapacityBits: true}
	}
	*sum += asked
	return nil
}

// addBuffers is condition 4.2.
func (b *booking) addBuffers(v *Virtual) error {
	for in, p := range v.Ports {
		for out, q := range v.Ports {
			if p.Physical < 0 || q.Physical < 0 || !v.reaches(in, out) {
				continue
			}
			sum := &b.memory[p.Physical*len(b.c.Ports)+q.Physical]
			asked := v.crosspoint(in, out).Size
			if *sum+asked > b.c.Crosspoint {
				return &Rejection{Switch: v.Name, Resource: fmt.Sprintf("memory of crosspoint %d-%d", p.Physical, q.Physical), At: b.at, Asked: int64(asked), Free: int64(b.c.Crosspoint - *sum)}
			}
			*sum += asked
		}
	}
	return nil
}

// check says whether a switch can become what d says.
func (d *draft) check() error {
	c := d.s.cfg
	c.Ports = d.ports
	for i, p := range d.ports {
		if err := p.check(i); err != nil {
			return err
		}
	}
	if err := c.admit(d.list, d.now); err != nil {
		return err
	}
	if err := d.checkRoom(); err != nil {
		return err
	}
	return d.checkClaims()
}

// checkRoom checks what depends on what is still draining.
func (d *draft) checkRoom() error {
	used := 0
	for _, v := range d.s.members {
		if v != nil && (v.gone || d.find(v.cfg.Name) < 0) {
			used++
		}
	}
	if used+len(d.list) > d.s.cfg.MaxSwitches {
		return fmt.Errorf("%d virtual switches and %d that still send their last frames: the switch was made for %d", len(d.list), used, d.s.cfg.MaxSwitches)
	}
	for i := range d.list {
		if id, ok := d.s.names[d.list[i].Name]; ok {
			if err := d.s.members[id].checkPorts(&d.list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPorts checks that ports keep their index and place.
func (v *virtual) checkPorts(to *Virtual) error {
	if len(to.Ports) < len(v.cfg.Ports) {
		return fmt.Errorf("virtual switch %q has %d ports, its change names %d: name every port, with Physical -1 for one that goes", to.Name, len(v.cfg.Ports), len(to.Ports))
	}
	for i, m := range v.outs {
		if p := to.Ports[i].Physical; m.phys >= 0 && p >= 0 && p != m.phys {
			return fmt.Errorf("virtual switch %q, port %d: it is on physical port %d and cannot move to %d: take it away (Physical -1) and add it again when its %d queued frames are sent", to.Name, i, m.phys, p, m.packets)
		}
	}
	return nil
}

// least is the smallest rate leased of each physical output.
func (d *draft) least() []vnet.Rate {
	least := make([]vnet.Rate, len(d.ports))
	for _, v := range d.list {
		for _, p := range v.Ports {
			if p.Physical >= 0 && (least[p.Physical] == 0 || p.Out < least[p.Physical]) {
				least[p.Physical] = p.Out
			}
		}
	}
	return least
}
