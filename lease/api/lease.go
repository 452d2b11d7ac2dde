package api

import (
	"fmt"

	"sublet/vnet"
)

// Ask is the body of POST /v1/leases.
type Ask struct {
	Request vnet.Request `json:"request"`
	Accept  bool         `json:"accept,omitempty"` // take the counter-offer, if it comes to that
	// Waiting lets a request that is refused wait for room; "": it does not.
	Waiting vnet.WaitingFor `json:"waiting,omitempty"`
}

// Admission is a yes: the lease, and what it lacks of the request when the
// counter-offer was accepted.
type Admission struct {
	Lease vnet.Lease `json:"lease,omitzero"`
	// Waiting is the request if it was refused, and waits; then there is no lease.
	Waiting *vnet.Waiting `json:"waiting,omitempty"`
	Changes []vnet.Change `json:"changes,omitempty"`
	// Moves are leases that are moved to make room.
	Moves []vnet.Disturbance `json:"moves,omitempty"`
}

// Update is the body of PUT /v1/leases/TENANT/NETWORK.
type Update struct {
	Request vnet.Request `json:"request"`           // the whole of it; a start that is left out stays
	DryRun  bool         `json:"dry_run,omitempty"` // only say what would come of it
}

// Updated is a yes: the lease, and in what its request differs from the former
// one; nothing: it was as asked already.
type Updated struct {
	Lease   vnet.Lease    `json:"lease"`
	Changes []vnet.Change `json:"changes,omitempty"`
}

// Tag is the entity tag of a lease's request: another one after each change by
// its owner.
func Tag(l vnet.Lease) string { return fmt.Sprintf("%q", fmt.Sprintf("%d.%d", l.Serial, l.Revision)) }

// Settled says that a deployment came to an end, good or bad.
func Settled(l vnet.Lease) bool {
	return l.State.Holds() || l.State == vnet.Failed || l.State == vnet.Ended
}

// Forming says that a lease is given another form by its owner, which is not in force yet.
func Forming(l vnet.Lease) bool {
	m := l.Move
	return m != nil && m.Form != nil && (m.Phase == vnet.MoveBuilds || m.Phase == vnet.MoveSwitches)
}

// Gone says that no host has anything of the lease any more.
func Gone(l vnet.Lease) bool {
	return l.State == vnet.Ended && len(l.Addresses) == 0
}
