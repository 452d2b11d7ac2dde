package nsh

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
)

// slotsOfHops is SLOTS_OF_HOPS of nsh.h; slot 0 is of what belongs to no plane.
const slotsOfHops = 8192

// rowsOf builds a plane's rows, whose counters are in the slots that they have.
func (t *tables) rowsOf(r record, s *site) (rows, error) {
	slots, err := t.slots()
	if err != nil {
		return rows{}, err
	}
	g := ground{
		id: r.ID, number: r.Numbers, mtu: s.below.MTU, chain: uint32(s.chain), queue: uint32(s.queue.Index), inner: uint32(s.inner.Index),
		device: func(name string) uint32 { return s.index[name] },
		slot:   slots.of,
	}
	g.planeID = slots.plane(r.ID)
	all := rowsOf(r.Plane, g)
	if slots.full {
		return all, errors.New("the host has no more rows for hops")
	}
	for _, slot := range slots.fresh {
		if err := t.clear(slot); err != nil {
			return all, err
		}
	}
	return all, nil
}

// slots are counters' places, and who has them.
type slots struct {
	hops   map[uint32]nshHop
	planes map[uint32]nshPlane
	used   map[uint32]bool
	fresh  []uint32
	next   uint32
	full   bool
}

func (t *tables) slots() (*slots, error) {
	hops, err := read[uint32, nshHop](t.table("hops"))
	if err != nil {
		return nil, err
	}
	planes, err := read[uint32, nshPlane](t.table("planes"))
	if err != nil {
		return nil, err
	}
	s := &slots{hops: hops, planes: planes, used: make(map[uint32]bool), next: 1}
	for _, h := range hops {
		s.used[h.Slot] = true
	}
	for _, p := range planes {
		s.used[p.Slot] = true
	}
	return s, nil
}

func (s *slots) free() uint32 {
	for ; s.next < slotsOfHops; s.next++ {
		if !s.used[s.next] {
			s.used[s.next] = true
			s.fresh = append(s.fresh, s.next)
			return s.next
		}
	}
	s.full = true
	return 0
}

func (s *slots) of(at uint32) uint32 {
	if h, ok := s.hops[at]; ok {
		return h.Slot
	}
	return s.free()
}

func (s *slots) plane(id uint32) uint32 {
	if p, ok := s.planes[id]; ok {
		return p.Slot
	}
	return s.free()
}

func (t *tables) clear(slot uint32) error {
	n, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	return t.table("counters").Put(slot, make([]nshCounts, n))
}

// apply writes rows so that each finds what it leads to: functions, then hops from
// the egress on, then whatever begins a chain.
func (t *tables) apply(r record, all rows, s *site, was map[uint32]bool) error {
	steps := []func() error{
		func() error { return t.flows(all, was) },
		func() error { return putAll(t.table("firewalls"), all.firewalls) },
		func() error { return putAll(t.table("nats"), all.nats) },
		func() error { return putAll(t.table("balancers"), all.balancers) },
		func() error { return t.putLimits(all.limits) },
		func() error { return putAll(t.table("remotes"), all.remotes) },
		func() error { return t.table("planes").Put(r.ID, all.plane) },
		func() error { return t.putLives(all.lives) },
		func() error { return t.forgetMemories(was) },
		func() error { return putAll(t.table("sides"), all.sides) },
		func() error { return t.attachAll("return", maps.Keys(all.sides), s) },
		func() error { return t.joinQueue(r, s) },
		func() error { return t.putHops(all.hops) },
		func() error { return putAll(t.table("paths"), all.paths) },
		func() error { return putAll(t.table("senders"), all.senders) },
		func() error { return t.joinHost(r, s) },
		func() error { return putAll(t.table("classifiers"), all.classifiers) },
		func() error { return t.attachAll("classify", maps.Keys(all.classifiers), s) },
	}
	for _, do := range steps {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

func putAll[K comparable, V any](m *ebpf.Map, all map[K]V) error {
	for key, value := range all {
		if err := m.Put(key, value); err != nil {
			return fmt.Errorf("write a row of %s: %w", m, err)
		}
	}
	return nil
}

func (t *tables) putHops(hops map[uint32]nshHop) error {
	for _, at := range slices.SortedFunc(maps.Keys(hops), func(a, b uint32) int { return cmp.Compare(a&0xff, b&0xff) }) {
		if err := t.table("hops").Put(at, hops[at]); err != nil {
			return fmt.Errorf("write a hop: %w", err)
		}
	}
	return nil
}

// putLimits leaves a bucket alone that has the rate already.
func (t *tables) putLimits(limits map[uint32]nshLimit) error {
	for n, l := range limits {
		var was nshLimit
		if err := t.table("limits").Lookup(n, &was); err == nil && was.Rate == l.Rate && was.Burst == l.Burst {
			continue
		}
		if err := t.table("limits").Put(n, l); err != nil {
			return fmt.Errorf("write a limit: %w", err)
		}
	}
	return nil
}

// putLives leaves what is known of nodes that were watched already.
func (t *tables) putLives(lives map[uint32]nshLife) error {
	for n, l := range lives {
		var was nshLife
		if err := t.table("lives").Lookup(n, &was); err == nil && was.Window == l.Window {
			continue
		}
		if err := t.table("lives").Put(n, l); err != nil {
			return fmt.Errorf("watch a node: %w", err)
		}
	}
	return nil
}

// shared says of the nodes that are functions whether flows tell their paths apart.
func (t *tables) shared() (map[uint32]bool, error) {
	sides, err := read[uint32, nshSide](t.table("sides"))
	if err != nil {
		return nil, err
	}
	shared := make(map[uint32]bool)
	for _, s := range sides {
		shared[s.Function] = s.Shared != 0
	}
	return shared, nil
}

// flows makes tables of flows; one that has its size stays, with what is in it, unless
// that is left of an earlier time in which paths shared a node.
func (t *tables) flows(all rows, was map[uint32]bool) error {
	spec, err := loadNsh()
	if err != nil {
		return err
	}
	outer := t.table("conns")
	for n, flows := range all.flows {
		var had *ebpf.Map
		shared, node := was[n]
		if err := outer.Lookup(n, &had); err == nil {
			same := had.MaxEntries() == 2*flows
			had.Close()
			if same && (shared || !node) {
				continue
			}
		}
		inner := spec.Maps["conns"].InnerMap.Copy()
		inner.MaxEntries = 2 * flows // both directions
		m, err := ebpf.NewMap(inner)
		if err != nil {
			return fmt.Errorf("make a table for %d flows: %w", flows, err)
		}
		err = outer.Put(n, m)
		m.Close()
		if err != nil {
			return fmt.Errorf("put a table of flows: %w", err)
		}
	}
	return nil
}

func (t *tables) attachAll(program string, indexes func(func(uint32) bool), s *site) error {
	for index := range indexes {
		if err := t.attach(place{program, int(index)}, bpf.Hook{Namespace: s.fabric}); err != nil {
			return err
		}
	}
	return nil
}

func (t *tables) attach(at place, h bpf.Hook) error {
	h.Index, h.Attach, h.First = at.index, ebpf.AttachTCXIngress, true
	return t.pins.Attach(at.pin(), h, t.all.Programs["nsh_"+at.program])
}

// joinQueue has packets go on behind the queue.
func (t *tables) joinQueue(r record, s *site) error {
	if !r.Plane.waits() {
		return nil
	}
	behind := bpf.Hook{Namespace: s.fabric, Index: s.queue.Peer, Attach: ebpf.AttachTCXIngress, First: true}
	return t.pins.Attach(r.shaped().pin(), behind, t.all.Programs["nsh_shaped"])
}

// joinHost opens the way from the fabric to other hosts and back.
func (t *tables) joinHost(r record, s *site) error {
	if r.Plane.Interface == "" {
		return nil
	}
	if err := t.table("uplinks").Put(uint32(s.inner.Index), uint32(s.below.Index)); err != nil {
		return fmt.Errorf("lead packets out: %w", err)
	}
	if err := t.attach(place{"uplink", s.inner.Index}, bpf.Hook{Namespace: s.host.Home()}); err != nil {
		return err
	}
	// The fabric's devices have numbers of their own on the host, but not this one:
	// its pin is named by the other end.
	enter := bpf.Hook{Namespace: s.fabric, Index: s.chain, Attach: ebpf.AttachTCXIngress, First: true}
	if err := t.pins.Attach(place{"enter", s.inner.Index}.pin(), enter, t.all.Programs["nsh_enter"]); err != nil {
		return err
	}
	if err := t.table("locals").Put(address(r.Plane.Local), uint32(1)); err != nil {
		return fmt.Errorf("take packets in: %w", err)
	}
	return t.attach(place{"rx", s.below.Index}, bpf.Hook{Namespace: s.host.Home()})
}
