package server

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

// TestMaintenance: the operator plans it, whom it concerns is told and sees their
// own, and it is there after a restart.
func TestMaintenance(t *testing.T) {
	r := newRig(t)
	r.events = t.TempDir()
	r.stop()
	r.start()
	ctx, tenant := within(t), r.as(1)
	id := must[api.Admission](t)(tenant.Admit(ctx, pair("net", vnet.Mbit), false)).Lease.ID()
	start := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	_, err := tenant.AddMaintenance(ctx, api.MaintenanceAsk{Of: "h1", For: time.Hour})
	wantError(t, "a tenant plans maintenance", err, api.ErrForbidden)
	_, err = r.as(0).AddMaintenance(ctx, api.MaintenanceAsk{Of: "h9", For: time.Hour})
	wantError(t, "maintenance of a host that is not there", err, api.ErrNotFound)
	for _, ask := range []api.MaintenanceAsk{{Of: "h1"}, {Of: "h1", For: time.Hour, Start: time.Now().Add(-2 * time.Hour)}, {Of: "h1", For: 367 * 24 * time.Hour}, {Of: "h1", For: time.Hour, Note: strings.Repeat("x", 201)}} {
		if _, err := r.as(0).AddMaintenance(ctx, ask); err == nil {
			t.Errorf("%+v is planned", ask)
		}
	}
	would := must[api.Maintenance](t)(r.as(0).AddMaintenance(ctx, api.MaintenanceAsk{Of: "h1", Start: start, For: time.Hour, DryRun: true}))
	if len(would.Stays) != 1 || would.Stays[0].Lease != id || would.ID != "" || len(must[[]api.Maintenance](t)(tenant.MaintenanceList(ctx))) != 0 {
		t.Errorf("a dry run: %+v", would)
	}
	m := must[api.Maintenance](t)(r.as(0).AddMaintenance(ctx, api.MaintenanceAsk{Of: "h1", Start: start, For: time.Hour, Note: "new fan"}))
	if len(m.Leases) != 1 || m.Leases[0] != id || m.Host != "h1" || !m.Start.Equal(start) ||
		len(m.Stays) != 1 || len(m.Stays[0].Reasons) == 0 || len(m.Stays[0].Offers) == 0 {
		t.Errorf("planned: %+v", m)
	}
	for uid, want := range map[int]int{1: 1, 2: 0, 0: 1} {
		if list := must[[]api.Maintenance](t)(r.as(uid).MaintenanceList(ctx)); len(list) != 1 || len(list[0].Leases) != want {
			t.Errorf("user %d sees %+v", uid, list)
		}
	}
	req := pair("during", vnet.Mbit)
	req.Start, req.For = start, 30*time.Minute
	_, err = tenant.Admit(ctx, req, false)
	var no *vnet.Rejection
	if !errors.As(err, &no) || !strings.Contains(strings.Join(no.Reasons, " "), "maintenance of host h1") || len(no.Offers) == 0 {
		t.Errorf("asked for meanwhile: %v", err)
	}
	if c := must[api.Calendar](t)(tenant.Calendar(ctx, vnet.Window{Start: start, End: start.Add(time.Hour)})); len(c.Maintenance) != 1 {
		t.Errorf("the calendar has %+v", c.Maintenance)
	}
	r.stop()
	r.start()
	if _, err := r.as(0).RemoveMaintenance(ctx, m.ID); err != nil {
		t.Error(err)
	}
	_, err = r.as(0).RemoveMaintenance(ctx, m.ID)
	wantError(t, "removed twice", err, api.ErrNotFound)
	must[api.Admission](t)(r.as(1).Admit(ctx, req, false))
	told := ""
	list := must[[]vnet.Happening](t)(r.server.journal.happened("daemon", time.Time{}, func(h vnet.Happening) bool { return h.Kind == string(kindMaintenance) }))
	for _, h := range list {
		told += h.State + " " + h.Why + "\n"
	}
	if !strings.Contains(told, "planned maintenance of host h1") || !strings.Contains(told, "new fan: it stays: ") || !strings.Contains(told, "; instead: ") || !strings.Contains(told, "cancelled ") {
		t.Errorf("told: %q", told)
	}
}
