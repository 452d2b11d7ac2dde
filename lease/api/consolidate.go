package api

import (
	"context"
	"net/http"

	"sublet/vnet"
)

// ConsolidateAsk has leases placed together, or apart.
type ConsolidateAsk struct {
	Aim vnet.Aim `json:"aim,omitempty"` // default: vnet.FewestHosts
	// DryRun: only say what would become of leases.
	DryRun bool `json:"dry_run,omitempty"`
}

// Consolidated is what becomes of them.
type Consolidated struct {
	Moved   []vnet.Disturbance `json:"moved"`
	Emptied []vnet.HostID      `json:"emptied"` // which had something and have nothing
	Full    []FullHost         `json:"full"`    // which cannot be emptied
}

// FullHost is a host that cannot be emptied, and why.
type FullHost struct {
	Host    vnet.HostID `json:"host"`
	Reasons []string    `json:"reasons"`
}

// Consolidate places leases together, or apart; for the operator.
func (c *Client) Consolidate(ctx context.Context, ask ConsolidateAsk) (of Consolidated, err error) {
	return of, c.do(ctx, http.MethodPost, "/v1/consolidation", ask, &of)
}
