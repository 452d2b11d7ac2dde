package nsh

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
)

// report sums a plane's counters over processors.
func (t *tables) report(r record) (Report, error) {
	var out Report
	for _, h := range r.Plane.Hops {
		var row nshHop
		at := rowKey(h.Path, h.Index)
		if err := t.table("hops").Lookup(at, &row); err != nil {
			return out, fmt.Errorf("path %d, index %d: %w", h.Path, h.Index, err)
		}
		c, err := t.counts(row.Slot)
		if err != nil {
			return out, err
		}
		out.Hops = append(out.Hops, Counts{
			Path: h.Path, Index: h.Index, Packets: c.Packets, Bytes: c.Bytes, Returned: c.Returned, Drops: drops(c),
			Timed: c.Timed, Spent: c.Spent,
		})
	}
	var err error
	if out.Dead, out.Answers, err = t.lives(r); err != nil {
		return out, err
	}
	var plane nshPlane
	if err := t.table("planes").Lookup(r.ID, &plane); err != nil {
		return out, fmt.Errorf("its counters: %w", err)
	}
	c, err := t.counts(plane.Slot)
	out.Drops = drops(c)
	return out, err
}

// lives says which watched nodes of a plane return nothing, and what came back from each.
func (t *tables) lives(r record) (dead []string, answers map[string]uint32, err error) {
	answers = make(map[string]uint32)
	for name := range watchedOf(r.Plane) {
		var l nshLife
		n, ok := r.Numbers[functionKey(name)]
		if !ok {
			continue
		}
		err := t.table("lives").Lookup(n, &l)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil, nil, fmt.Errorf("ask whether %s lives: %w", name, err)
		}
		if l.Dead != 0 {
			dead = append(dead, name)
		}
		answers[name] = l.Answers
	}
	slices.Sort(dead)
	return dead, answers, nil
}

func (t *tables) counts(slot uint32) (sum nshCounts, err error) {
	var each []nshCounts
	if err := t.table("counters").Lookup(slot, &each); err != nil {
		return sum, fmt.Errorf("read counters: %w", err)
	}
	for _, c := range each {
		sum.Packets += c.Packets
		sum.Bytes += c.Bytes
		sum.Returned += c.Returned
		sum.Timed += c.Timed
		sum.Spent += c.Spent
		for i, n := range c.Drops {
			sum.Drops[i] += n
		}
	}
	return sum, nil
}

func drops(c nshCounts) map[string]uint64 {
	by := make(map[string]uint64)
	for i, n := range c.Drops {
		if n > 0 {
			by[causes()[i]] = n
		}
	}
	return by
}

// Drops are those of packets of no plane on this host: from elsewhere, on paths that
// nobody has here.
func (p *Part) Drops() (map[string]uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, err := p.records()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	t, err := p.tables()
	if err != nil {
		return nil, err
	}
	c, err := t.counts(0)
	return drops(c), err
}

// Programs are those that stand on ports of links, if any plane is there.
func (p *Part) Programs() (ids []ebpf.ProgramID, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if all, err := p.records(); err != nil || len(all) == 0 {
		return nil, err
	}
	t, err := p.tables()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"nsh_classify", "nsh_return"} {
		id, err := bpf.ID(t.all.Programs[name])
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Planes are those that were set. One of which something is missing in the kernel
// has only its fabric: no plan has that.
func (p *Part) Planes() ([]Plane, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, err := p.records()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	t, err := p.tables()
	if err != nil {
		return nil, err
	}
	var planes []Plane
	for _, r := range all {
		if p.stands(t, r) != nil {
			r.Plane = Plane{Fabric: r.Plane.Fabric}
		}
		planes = append(planes, r.Plane)
	}
	sort.Slice(planes, func(i, j int) bool { return planes[i].Fabric < planes[j].Fabric })
	return planes, nil
}

// stands says what of a plane is missing or wrong.
func (p *Part) stands(t *tables, r record) error {
	s, err := p.open(r.Plane)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.devices(r.Plane); err != nil {
		return err
	}
	if r.Plane.Interface != "" {
		if s.inner, err = s.home.LinkByName(homeDevice(r.Plane.Fabric)); err != nil {
			return err
		}
		in, err := s.inside.LinkByName(chainDevice)
		if err != nil || in.Index != s.inner.Peer || !in.Up || !s.inner.Up {
			return fmt.Errorf("device %s: %w", chainDevice, err)
		}
		s.chain = in.Index
	}
	if err := s.queued(r); err != nil {
		return err
	}
	want, err := t.rowsOf(r, s)
	if err != nil {
		return err
	}
	if err := t.holds(want); err != nil {
		return err
	}
	return t.attached(r, want, s)
}

func (t *tables) holds(want rows) error {
	for _, err := range []error{
		same(t.table("hops"), want.hops), same(t.table("paths"), want.paths), same(t.table("classifiers"), want.classifiers),
		same(t.table("sides"), want.sides), same(t.table("firewalls"), want.firewalls), same(t.table("nats"), want.nats),
		same(t.table("balancers"), want.balancers), same(t.table("remotes"), want.remotes), same(t.table("senders"), want.senders),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// same says which of some rows a map does not have as they should be.
func same[K comparable, V any](m *ebpf.Map, want map[K]V) error {
	for key, value := range want {
		var have V
		if err := m.Lookup(key, &have); err != nil {
			return err
		}
		if !reflect.DeepEqual(have, value) {
			return fmt.Errorf("a row of %s is another", m)
		}
	}
	return nil
}

// attached says which program is not where it should be.
func (t *tables) attached(r record, want rows, s *site) error {
	var places []place
	for n := range want.classifiers {
		places = append(places, place{"classify", int(n)})
	}
	for n := range want.sides {
		places = append(places, place{"return", int(n)})
	}
	if r.Plane.Interface != "" {
		places = append(places, place{"uplink", s.inner.Index}, place{"rx", s.below.Index}, place{"enter", s.inner.Index})
	}
	if r.Plane.waits() {
		places = append(places, r.shaped())
	}
	for _, at := range places {
		index := at.index
		switch at.program {
		case "enter":
			index = s.chain
		case "shaped":
			index = s.queue.Peer
		}
		on, err := t.pins.Attached(at.pin(), index, t.all.Programs["nsh_"+at.program])
		if err != nil || !on {
			return fmt.Errorf("program %s is not on device %d: %w", at.program, index, err)
		}
	}
	return nil
}
