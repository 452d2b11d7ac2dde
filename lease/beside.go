package lease

import (
	"cmp"
	"maps"
	"slices"

	"sublet/vnet"
)

// beside is what the book keeps of tenants beside their leases.
type beside struct {
	notify  kept[vnet.TenantID, vnet.Notify]
	waiting kept[vnet.LeaseID, vnet.Waiting]
}

func newBeside() beside {
	return beside{newKept[vnet.TenantID, vnet.Notify](), newKept[vnet.LeaseID, vnet.Waiting]()}
}

// kept are things by their names, and which became different since they were saved.
type kept[K comparable, V any] struct {
	of      map[K]V
	changed map[K]bool
}

func newKept[K comparable, V any]() kept[K, V] {
	return kept[K, V]{make(map[K]V), make(map[K]bool)}
}

func (k kept[K, V]) set(name K, value V) { k.of[name], k.changed[name] = value, true }

// drop forgets one; false: there was none.
func (k kept[K, V]) drop(name K) bool {
	_, known := k.of[name]
	if known {
		delete(k.of, name)
		k.changed[name] = true
	}
	return known
}

// changes are what became different, in an order: what there is, and the names of what
// is gone.
func (k kept[K, V]) changes(order func(a, b K) int) (is []V, gone []K) {
	for _, name := range slices.SortedFunc(maps.Keys(k.changed), order) {
		if value, ok := k.of[name]; ok {
			is = append(is, value)
		} else {
			gone = append(gone, name)
		}
	}
	return is, gone
}

// SetNotify keeps where a tenant is told of events.
func (b *Book) SetNotify(n vnet.Notify) { b.beside.notify.set(n.Tenant, n) }

// DropNotify forgets it; false: there was none.
func (b *Book) DropNotify(t vnet.TenantID) bool { return b.beside.notify.drop(t) }

// Notify is where a tenant is told of events.
func (b *Book) Notify(t vnet.TenantID) (vnet.Notify, bool) {
	n, ok := b.beside.notify.of[t]
	return n, ok
}

// Notifies are those of all tenants, by name.
func (b *Book) Notifies() (list []vnet.Notify) {
	for _, t := range slices.Sorted(maps.Keys(b.beside.notify.of)) {
		list = append(list, b.beside.notify.of[t])
	}
	return list
}

// SetWaiting keeps a request that waits for room, instead of one of its name.
func (b *Book) SetWaiting(w vnet.Waiting) { b.beside.waiting.set(w.ID(), w) }

// DropWaiting ends that one waits; false: none of that name did.
func (b *Book) DropWaiting(id vnet.LeaseID) bool { return b.beside.waiting.drop(id) }

// Waiting is the request of a name that waits.
func (b *Book) Waiting(id vnet.LeaseID) (vnet.Waiting, bool) {
	w, ok := b.beside.waiting.of[id]
	return w, ok
}

// AllWaiting are the requests that wait, of a tenant or of all with "", the one that
// waits for longest first.
func (b *Book) AllWaiting(tenant vnet.TenantID) (list []vnet.Waiting) {
	for id, w := range b.beside.waiting.of {
		if tenant == "" || id.Tenant == tenant {
			list = append(list, w)
		}
	}
	slices.SortFunc(list, func(a, b vnet.Waiting) int { return cmp.Or(a.Since.Compare(b.Since), byID(a.ID(), b.ID())) })
	return list
}

// saved says that the store has all of it.
func (s beside) saved() {
	clear(s.notify.changed)
	clear(s.waiting.changed)
}

// addTo adds what became different.
func (s beside) addTo(c *Changes) {
	c.Notify, c.NoNotify = s.notify.changes(cmp.Compare[vnet.TenantID])
	c.Waiting, c.NoWaiting = s.waiting.changes(byID)
}
