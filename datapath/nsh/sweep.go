package nsh

import (
	"errors"

	"github.com/cilium/ebpf"
)

// sweep takes away what a plane has and should not have, the beginning of chains
// first. all are the records of every plane.
func (t *tables) sweep(all map[string]record, r record, want rows, was map[uint32]bool) error {
	mine := func(n uint32) bool { return n>>numberBits == r.ID }
	all = with(all, r)
	errs := []error{
		sweepRows(t.table("classifiers"), want.classifiers, func(_ uint32, v nshRules) bool { return v.Plane == r.ID }),
		t.sweepPlaces(all),
		t.sweepLocals(all),
		sweepRows(t.table("senders"), want.senders, func(k nshSender, _ uint32) bool { return k.Plane == r.ID }),
		t.sweepHops(r, want),
		sweepRows(t.table("sides"), want.sides, func(_ uint32, v nshSide) bool { return v.Plane == r.ID }),
		t.sweepMemories(),
		t.sweepProbes(),
		sweepRows(t.table("remotes"), want.remotes, func(n uint32, _ nshRemote) bool { return mine(n) }),
		sweepRows(t.table("firewalls"), want.firewalls, func(n uint32, _ nshRules) bool { return mine(n) }),
		sweepRows(t.table("nats"), want.nats, func(n uint32, _ nshNat) bool { return mine(n) }),
		sweepRows(t.table("balancers"), want.balancers, func(n uint32, _ nshBalancer) bool { return mine(n) }),
		sweepRows(t.table("lives"), want.lives, func(n uint32, _ nshLife) bool { return mine(n) }),
		sweepRows(t.table("limits"), want.limits, func(n uint32, _ nshLimit) bool { return mine(n) }),
		t.sweepFlows(want, mine, was),
	}
	if want.plane == (nshPlane{}) {
		errs = append(errs, drop(t.table("planes"), r.ID))
	}
	return errors.Join(errs...)
}

func with(all map[string]record, r record) map[string]record {
	next := make(map[string]record, len(all)+1)
	for fabric, other := range all {
		next[fabric] = other
	}
	if len(r.Plane.paths()) > 0 || r.Plane.Interface != "" || len(r.Plane.Functions) > 0 {
		next[r.Plane.Fabric] = r
	}
	return next
}

func sweepRows[K comparable, V any](m *ebpf.Map, want map[K]V, mine func(K, V) bool) error {
	have, err := read[K, V](m)
	if err != nil {
		return err
	}
	for key, value := range have {
		if _, ok := want[key]; ok || !mine(key, value) {
			continue
		}
		if err := drop(m, key); err != nil {
			return err
		}
	}
	return nil
}

// sweepHops takes hops away and then the paths that have none any more.
func (t *tables) sweepHops(r record, want rows) error {
	paths, err := read[uint32, nshPath](t.table("paths"))
	if err != nil {
		return err
	}
	err = sweepRows(t.table("hops"), want.hops, func(at uint32, _ nshHop) bool { return paths[at>>8].Plane == r.ID })
	if err != nil {
		return err
	}
	return sweepRows(t.table("paths"), want.paths, func(_ uint32, p nshPath) bool { return p.Plane == r.ID })
}

// sweepPlaces detaches programs that no row needs.
func (t *tables) sweepPlaces(all map[string]record) error {
	classifiers, err := read[uint32, nshRules](t.table("classifiers"))
	if err != nil {
		return err
	}
	planes, err := read[uint32, nshPlane](t.table("planes"))
	if err != nil {
		return err
	}
	sides, err := read[uint32, nshSide](t.table("sides"))
	if err != nil {
		return err
	}
	known, inner, waits := make(map[uint32]bool), make(map[uint32]bool), make(map[uint32]bool)
	remote := false
	for _, r := range all {
		known[r.ID], waits[r.ID] = true, r.Plane.waits()
		remote = remote || r.Plane.Interface != ""
		if r.Plane.Interface != "" {
			inner[planes[r.ID].Device] = true
		}
	}
	names, err := t.pins.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		at, ok := placeOf(name)
		if !ok {
			continue
		}
		n := uint32(at.index)
		needed := false
		switch at.program {
		case "classify":
			_, needed = classifiers[n]
		case "return":
			side, there := sides[n]
			needed = there && known[side.Plane]
		case "enter", "uplink":
			needed = inner[n]
		case "rx":
			needed = remote
		case "shaped":
			needed = waits[n]
		}
		if needed {
			continue
		}
		if at.program == "uplink" {
			if err := drop(t.table("uplinks"), n); err != nil {
				return err
			}
		}
		if err := t.pins.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

func (t *tables) sweepLocals(all map[string]record) error {
	want := make(map[nshIn6Addr]uint32)
	for _, r := range all {
		if r.Plane.Interface != "" {
			want[address(r.Plane.Local)] = 1
		}
	}
	return sweepRows(t.table("locals"), want, func(nshIn6Addr, uint32) bool { return true })
}

// forgetMemories forgets the one path of nodes that paths have shared since before the
// last change: nothing that went in earlier is in them any more.
func (t *tables) forgetMemories(was map[uint32]bool) error {
	sides, err := read[uint32, nshSide](t.table("sides"))
	if err != nil {
		return err
	}
	return sweepRows(t.table("memories"), map[uint32]nshConn{}, func(n uint32, _ nshConn) bool { return was[sides[n].Function] })
}

func (t *tables) sweepMemories() error {
	sides, err := read[uint32, nshSide](t.table("sides"))
	if err != nil {
		return err
	}
	return sweepRows(t.table("memories"), map[uint32]nshConn{}, func(n uint32, _ nshConn) bool {
		_, ok := sides[n]
		return !ok
	})
}

// sweepProbes forgets packets in nodes that are gone.
func (t *tables) sweepProbes() error {
	sides, err := read[uint32, nshSide](t.table("sides"))
	if err != nil {
		return err
	}
	return sweepRows(t.table("probes"), map[uint32]nshProbe{}, func(n uint32, _ nshProbe) bool {
		_, ok := sides[n]
		return !ok
	})
}

// sweepFlows takes tables of flows away. That of a node which paths shared until now
// stays until the next change: packets may be in the node.
func (t *tables) sweepFlows(want rows, mine func(uint32) bool, was map[uint32]bool) error {
	stays := make(map[uint32]bool)
	for _, s := range want.sides {
		stays[s.Function] = was[s.Function]
	}
	outer := t.table("conns")
	var keys []uint32
	var n uint32
	for all := outer.Iterate(); all.Next(&n, new(uint32)); {
		if _, ok := want.flows[n]; !ok && mine(n) && !stays[n] {
			keys = append(keys, n)
		}
	}
	for _, n := range keys {
		if err := drop(outer, n); err != nil {
			return err
		}
	}
	return nil
}
