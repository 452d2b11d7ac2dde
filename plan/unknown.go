package plan

import "sublet/vnet"

// Unknown is what could not be looked at of a host: whether it is there, and as
// planned, is not said.
type Unknown struct {
	Kind  Kind
	Lease vnet.LeaseID // whose items of that kind; zero: all of that kind
	Why   string
}

// Unseen notes that a lease's items of some kinds, or with no lease everybody's,
// could not be looked at. Nothing is done to them: neither taken away nor made
// again nor changed.
func (h *Host) Unseen(why error, lease vnet.LeaseID, kinds ...Kind) {
	for _, k := range kinds {
		h.Unknown = append(h.Unknown, Unknown{Kind: k, Lease: lease, Why: why.Error()})
	}
}

// unseen says whether an item could not be looked at.
func (h Host) unseen(item Item) bool {
	for _, u := range h.Unknown {
		if u.Kind == item.Kind() && (u.Lease == vnet.LeaseID{} || u.Lease == item.LeaseID()) {
			return true
		}
	}
	return false
}
