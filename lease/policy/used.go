package policy

import (
	"time"

	"sublet/vnet"
)

// Usage is what is used of a quota.
type Usage struct {
	Name  string     `json:"name"`  // of the tenant, or "group" and its name
	Quota vnet.Quota `json:"quota"` // what is missing is not limited
	Now   vnet.Quota `json:"now"`   // used at the moment
	Peak  vnet.Quota `json:"peak"`  // the most that is booked for any instant from now on
}

// Usage says how much of each account is used.
func (t Terms) Usage(now time.Time, b Book) []Usage {
	t = t.At(b)
	list := make([]Usage, len(t.Accounts))
	for i, a := range t.Accounts {
		list[i] = Usage{Name: a.Name, Quota: a.Quota, Now: make(vnet.Quota), Peak: make(vnet.Quota)}
		used, most := peak(a.held, vnet.Window{Start: now, End: now.Add(1)}), peak(a.held, vnet.Window{Start: now})
		for j, name := range concurrent {
			list[i].Now[name], list[i].Peak[name] = used[j], most[j]
		}
		for _, into := range []vnet.Quota{list[i].Now, list[i].Peak} {
			into[vnet.QuotaLeases] = int64(len(a.held))
			into[vnet.QuotaBandwidthTime] = bits(now, a.held)
		}
	}
	return list
}
