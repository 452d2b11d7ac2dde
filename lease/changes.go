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
	leases    map[vnet.LeaseID]bool // also dropped ones
}

func (b *Book) touch(e *entry) { b.changed.leases[e.ID()] = true }

// Changes returns what became different since they were last Saved; asking
// again without saving returns it again, and more.
func (b *Book) Changes() Changes {
	c := Changes{Counters: Counters{Serial: b.serial, Revision: b.rollout.revision}}
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
	for _, name := range slices.Sorted(maps.Keys(b.rollout.changed)) {
		if h, ok := b.rollout.hosts[name]; ok {
			c.Plans = append(c.Plans, h.plan)
		} else {
			c.NoPlans = append(c.NoPlans, name)
		}
	}
	return c
}

// Saved says that the store has everything Changes would return.
func (b *Book) Saved() {
	b.changed = changes{leases: make(map[vnet.LeaseID]bool)}
	b.rollout.changed = make(map[vnet.HostID]bool)
}

// byID orders leases by name.
func byID(a, b vnet.LeaseID) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Network, b.Network))
}
