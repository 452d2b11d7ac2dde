package vnet

import "time"

// Waiting is a request that was refused and waits for room.
type Waiting struct {
	Request Request    `json:"request"`
	Then    WaitingFor `json:"then"` // what is done when it fits
	Since   time.Time  `json:"since"`
	Fits    time.Time  `json:"fits,omitzero"` // since when it would be admitted; zero: it would not
	Why     string     `json:"why"`           // it was refused, the last time
	Owner   uint32     `json:"owner_uid"`
	// Unlimited: the operator asked, whom no policy binds.
	Unlimited bool `json:"unlimited,omitempty"`
}

// WaitingFor is what is done with a request that waits when it fits.
type WaitingFor string

// A request that fits is told so, or admitted at once.
const (
	WaitingOffer WaitingFor = "offer"
	WaitingAdmit WaitingFor = "admit"
)

// ID is the name that the lease would have.
func (w Waiting) ID() LeaseID { return LeaseID{w.Request.Tenant, w.Request.Network} }
