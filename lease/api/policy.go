package api

import (
	"sublet/lease/policy"
	"sublet/vnet"
)

// PolicyView is a tenant's limits and what is used of them.
type PolicyView struct {
	Tenant vnet.TenantID `json:"tenant"`
	// Refused says that the tenant may lease nothing.
	Refused bool `json:"refused,omitempty"`
	// Accounts are the tenant's own, then those of groups whose members have
	// limits together.
	Accounts []policy.Usage    `json:"accounts"`
	Nodes    vnet.NodeDefaults `json:"node_defaults"`
}
