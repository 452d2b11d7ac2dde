package api

import (
	"sublet/vnet"
)

// Aftermath is what came of something going down, or working again.
type Aftermath struct {
	Moved []vnet.LeaseID `json:"moved"` // are carried by something else now
	Lost  []LostLease    `json:"lost"`  // cannot be carried as the substrate is now
	Back  []vnet.LeaseID `json:"back"`  // were lost, and are carried again, there or elsewhere
}

// Drained is what became of the leases on a host that takes nothing new any more.
type Drained struct {
	Moved []vnet.LeaseID `json:"moved"`
	Stays []LostLease    `json:"stays"` // and why
}

// LostLease is a lease and why it cannot be carried.
type LostLease struct {
	Lease   vnet.LeaseID `json:"lease"`
	Reasons []string     `json:"reasons"`
}
