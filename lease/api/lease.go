package api

import (
	"sublet/vnet"
)

// Ask is the body of POST /v1/leases.
type Ask struct {
	Request vnet.Request `json:"request"`
	Accept  bool         `json:"accept,omitempty"` // take the counter-offer, if it comes to that
}

// Admission is a yes: the lease, and what it lacks of the request when the
// counter-offer was accepted.
type Admission struct {
	Lease   vnet.Lease    `json:"lease"`
	Changes []vnet.Change `json:"changes,omitempty"`
	// Moves are leases that are moved to make room.
	Moves []vnet.Disturbance `json:"moves,omitempty"`
}

// Settled says that a deployment came to an end, good or bad.
func Settled(l vnet.Lease) bool {
	return l.State.Up() || l.State == vnet.Failed || l.State == vnet.Ended
}

// Gone says that no host has anything of the lease any more.
func Gone(l vnet.Lease) bool {
	return l.State == vnet.Ended && len(l.Addresses) == 0
}
