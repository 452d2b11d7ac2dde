package lease

import (
	"slices"
	"strings"
	"time"

	"sublet/vnet"
)

// Charge adds what kernels spent on a lease's packets to its account; false: it has none.
func (b *Book) Charge(id vnet.LeaseID, spent time.Duration) bool {
	e, ok := b.entries[id]
	if !ok || e.Account == nil {
		return false
	}
	e.Account = e.Account.Charged(spent)
	b.touch(e)
	return true
}

// Touched are the leases that are different from what was saved last, in order.
func (b *Book) Touched() (list []vnet.LeaseID) {
	for id := range b.changed.leases {
		list = append(list, id)
	}
	slices.SortFunc(list, func(a, b vnet.LeaseID) int { return strings.Compare(a.String(), b.String()) })
	return list
}
