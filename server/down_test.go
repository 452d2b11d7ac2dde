package server

import (
	"os"
	"testing"

	"sublet/lease/api"
	"sublet/vnet"
)

// TestDownIsSaidAtOnce: what a link carried is lost with a reason the moment
// the operator says that it is down, and runs again when it works again, also
// after a restart in between.
func TestDownIsSaidAtOnce(t *testing.T) {
	r := newRig(t)
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	id := must[api.Admission](t)(c.Admit(ctx, pair("net", vnet.Mbit), false)).Lease.ID()
	must[vnet.Lease](t)(c.WaitReady(ctx, id))

	_, err := r.as(4242).SetDown(ctx, "links", "wire", true)
	wantError(t, "a tenant takes a link down", err, api.ErrForbidden)
	_, err = c.SetDown(ctx, "links", "nowhere", true)
	wantError(t, "no such link", err, api.ErrNotFound)

	after := must[api.Aftermath](t)(c.SetDown(ctx, "links", "wire", true))
	if len(after.Moved) != 0 || len(after.Lost) != 1 || after.Lost[0].Lease != id || len(after.Lost[0].Reasons) == 0 {
		t.Errorf("link down: %+v", after)
	}
	r.stop()
	r.start()
	r.agents() // those of before say nothing new for half a minute
	l := must[vnet.Lease](t)(c.Lease(ctx, id))
	if l.State != vnet.Failed || l.Message == "" || l.Lost == nil {
		t.Errorf("the lease is %s %q", l.State, l.Message)
	}
	if links := must[[]api.Link](t)(c.Links(ctx)); !links[0].Down {
		t.Errorf("links %+v", links)
	}
	after = must[api.Aftermath](t)(c.SetDown(ctx, "links", "wire", false))
	if len(after.Lost) != 0 || len(after.Moved) != 0 || len(after.Back) != 1 || after.Back[0] != id {
		t.Errorf("link up: %+v", after)
	}
	if l := must[vnet.Lease](t)(c.WaitReady(ctx, id)); l.State != vnet.Running || l.Lost != nil {
		t.Errorf("the lease is %s %q", l.State, l.Message)
	}
}
