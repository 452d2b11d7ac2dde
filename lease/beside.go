package lease

import (
	"cmp"
	"maps"
	"slices"

	"sublet/vnet"
)

// beside is what the book keeps of tenants beside their leases.
type beside struct {
	notify  map[vnet.TenantID]vnet.Notify
	changed map[vnet.TenantID]bool
	waiting map[vnet.LeaseID]vnet.Waiting
	other   map[vnet.LeaseID]bool // of waiting, what changed
}

func newBeside() beside {
	return beside{notify: make(map[vnet.TenantID]vnet.Notify), changed: make(map[vnet.TenantID]bool),
		waiting: make(map[vnet.LeaseID]vnet.Waiting), other: make(map[vnet.LeaseID]bool)}
}

// SetNotify keeps where a tenant is told of events.
func (b *Book) SetNotify(n vnet.Notify) {
	b.beside.notify[n.Tenant], b.beside.changed[n.Tenant] = n, true
}

// DropNotify forgets it; false: there was none.
func (b *Book) DropNotify(t vnet.TenantID) bool {
	_, known := b.beside.notify[t]
	if known {
		delete(b.beside.notify, t)
		b.beside.changed[t] = true
	}
	return known
}

// Notify is where a tenant is told of events.
func (b *Book) Notify(t vnet.TenantID) (vnet.Notify, bool) {
	n, ok := b.beside.notify[t]
	return n, ok
}

// Notifies are those of all tenants, by name.
func (b *Book) Notifies() (list []vnet.Notify) {
	for _, t := range slices.Sorted(maps.Keys(b.beside.notify)) {
		list = append(list, b.beside.notify[t])
	}
	return list
}

// SetWaiting keeps a request that waits for room, instead of one of its name.
func (b *Book) SetWaiting(w vnet.Waiting) {
	b.beside.waiting[w.ID()], b.beside.other[w.ID()] = w, true
}

// DropWaiting ends that one waits; false: none of that name did.
func (b *Book) DropWaiting(id vnet.LeaseID) bool {
	_, known := b.beside.waiting[id]
	if known {
		delete(b.beside.waiting, id)
		b.beside.other[id] = true
	}
	return known
}

// Waiting is the request of a name that waits.
func (b *Book) Waiting(id vnet.LeaseID) (vnet.Waiting, bool) {
	w, ok := b.beside.waiting[id]
	return w, ok
}

// AllWaiting are the requests that wait, of a tenant or of all with "", the one that
// waits for longest first.
func (b *Book) AllWaiting(tenant vnet.TenantID) (list []vnet.Waiting) {
	for id, w := range b.beside.waiting {
		if tenant == "" || id.Tenant == tenant {
			list = append(list, w)
		}
	}
	slices.SortFunc(list, func(a, b vnet.Waiting) int { return cmp.Or(a.Since.Compare(b.Since), byID(a.ID(), b.ID())) })
	return list
}

// saved says that the store has all of it.
func (s beside) saved() {
	clear(s.changed)
	clear(s.other)
}

// addTo adds what became different.
func (s beside) addTo(c *Changes) {
	for _, t := range slices.Sorted(maps.Keys(s.changed)) {
		if n, ok := s.notify[t]; ok {
			c.Notify = append(c.Notify, n)
		} else {
			c.NoNotify = append(c.NoNotify, t)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.other), byID) {
		if w, ok := s.waiting[id]; ok {
			c.Waiting = append(c.Waiting, w)
		} else {
			c.NoWaiting = append(c.NoWaiting, id)
		}
	}
}
