package api

import (
	"sublet/vnet"
)

// Link is one direction of a substrate link as it is now. Rates count
// tenants' frames. Whose leases they are is private to their tenants.
type Link struct {
	Name       string    `json:"name"`
	From       string    `json:"from"`
	To         string    `json:"to"`
	Capacity   vnet.Rate `json:"capacity_bps"`
	Leasable   vnet.Rate `json:"leasable_bps"`
	Booked     vnet.Rate `json:"booked_bps"` // sum of guaranteed minima
	Allocated  vnet.Rate `json:"alloc_bps"`  // sum of allocated rates
	Links      int       `json:"links"`      // the caller's virtual links that cross it; all for the operator, as below
	BestEffort int       `json:"best_effort"`
	Leases     int       `json:"leases"`
	Down       bool      `json:"down,omitempty"`
}
