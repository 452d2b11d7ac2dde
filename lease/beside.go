package lease

import (
	"maps"
	"slices"

	"sublet/vnet"
)

// beside is what the book keeps of tenants beside their leases.
type beside struct {
	notify  map[vnet.TenantID]vnet.Notify
	changed map[vnet.TenantID]bool
}

func newBeside() beside {
	return beside{notify: make(map[vnet.TenantID]vnet.Notify), changed: make(map[vnet.TenantID]bool)}
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

// addTo adds what became different.
func (s beside) addTo(c *Changes) {
	for _, t := range slices.Sorted(maps.Keys(s.changed)) {
		if n, ok := s.notify[t]; ok {
			c.Notify = append(c.Notify, n)
		} else {
			c.NoNotify = append(c.NoNotify, t)
		}
	}
}
