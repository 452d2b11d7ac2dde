package lease

import (
	"cmp"
	"maps"
	"slices"

	"sublet/vnet"
)

// changes is what became different since it was last taken.
type changes struct {
	substrate bool
	named     bool                   // the store has an identity now
	leases    map[vnet.LeaseID]bool  // also dropped ones
	entries   map[*entry]vnet.Record // the same, with the record that is being saved
}

func noChanges() changes {
	return changes{leases: make(map[vnet.LeaseID]bool), entries: make(map[*entry]vnet.Record)}
}

// touch notes that a lease changed: it is to be saved, and its phase may be another.
func (b *Book) touch(e *entry) {
	b.changed.leases[e.ID()] = true
	if _, ok := b.changed.entries[e]; !ok {
		b.changed.entries[e] = e.recorded
	}
	b.track(e)
}

// Changes returns what became different since they were last Saved; asking
// again without saving returns it again, and more.
func (b *Book) Changes() Changes {
	l := b.rollout.Lineage()
	c := Changes{Counters: Counters{Serial: b.serial, Revision: l.Revision, Store: l.Store, Terms: l.Terms}, Named: b.changed.named, Records: b.records()}
	if b.changed.substrate {
		sub := b.sub
		c.Substrate = &sub
	}
	for _, id := range slices.SortedFunc(maps.Keys(b.changed.leases), byID) {
		if e, ok := b.entries[id]; ok {
			c.Leases = append(c.Leases, e.Lease)
		} else {
			c.NoLeases = append(c.NoLeases, id)
		}
	}
	c.Plans, c.NoPlans = b.rollout.Changed()
	b.beside.addTo(&c)
	return c
}

// Saved says that the store has everything Changes would return.
func (b *Book) Saved() {
	for e, r := range b.changed.entries {
		e.recorded = r
	}
	b.changed = noChanges()
	b.beside.saved()
	b.rollout.Saved()
}

// byID orders leases by name.
func byID(a, b vnet.LeaseID) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Network, b.Network))
}
