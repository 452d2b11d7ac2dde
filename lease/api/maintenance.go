package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"sublet/vnet"
)

// MaintenanceAsk plans work on a host or a link of the substrate.
type MaintenanceAsk struct {
	Of    string        `json:"of"` // the host or link
	Start time.Time     `json:"start,omitzero"`
	For   time.Duration `json:"for_ns"`
	Note  string        `json:"note,omitempty"`
	// DryRun: only say what would become of leases.
	DryRun bool `json:"dry_run,omitempty"`
}

// Maintenance is what is planned, and the caller's leases that have something
// there meanwhile.
type Maintenance struct {
	vnet.Maintenance
	Leases []vnet.LeaseID `json:"leases"`
	// Where it was just planned, for the operator: leases that go elsewhere for it,
	// and why the others stay.
	Moved []vnet.Disturbance `json:"moved,omitempty"`
	Stays []Staying          `json:"stays,omitempty"`
}

// Staying is a lease that stays where there is maintenance, and what would be
// admitted in its place: the same anew (no axes), or what differs.
type Staying struct {
	Lease   vnet.LeaseID `json:"lease"`
	Reasons []string     `json:"reasons"`
	Offers  []vnet.Offer `json:"offers,omitempty"`
}

// AddMaintenance plans work; for the operator.
func (c *Client) AddMaintenance(ctx context.Context, ask MaintenanceAsk) (m Maintenance, err error) {
	return m, c.do(ctx, http.MethodPost, "/v1/maintenance", ask, &m)
}

// MaintenanceList is what is planned or under way.
func (c *Client) MaintenanceList(ctx context.Context) (list []Maintenance, err error) {
	return list, c.do(ctx, http.MethodGet, "/v1/maintenance", nil, &list)
}

// RemoveMaintenance takes a plan back; for the operator.
func (c *Client) RemoveMaintenance(ctx context.Context, id string) (m Maintenance, err error) {
	return m, c.do(ctx, http.MethodDelete, "/v1/maintenance/"+url.PathEscape(id), nil, &m)
}
