package server

import (
	"cmp"
	"slices"
	"time"

	"sublet/vnet"
)

// mostHappenings bounds an answer: those that happened last.
const mostHappenings = 1000

// happened lists a tenant's events since a time, or everybody's if that is "", in
// their order.
func (j *journal) happened(tenant vnet.TenantID, since time.Time, wanted func(vnet.Happening) bool) ([]vnet.Happening, error) {
	list := []vnet.Happening{}
	last := func() {
		slices.SortFunc(list, func(a, b vnet.Happening) int { return cmp.Compare(a.Number, b.Number) })
		list = slices.Delete(list, 0, max(0, len(list)-mostHappenings))
	}
	for _, of := range j.eventDirs(tenant) {
		err := each(j, of, since, func(h vnet.Happening) {
			if tenant != "" && h.Lease.Tenant != tenant || h.Time.Before(since) || !wanted(h) {
				return
			}
			if list = append(list, h); len(list) > 2*mostHappenings {
				last()
			}
		})
		if err != nil {
			return nil, err
		}
	}
	last()
	return list, nil
}
