package server

import (
	"errors"
	"os"
	"testing"

	"sublet/lease/api"
	"sublet/vnet"
)

// TestDrain: the operator alone drains a host; it takes nothing new, also after a
// restart, and says what stays.
func TestDrain(t *testing.T) {
	r := newRig(t)
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	id := must[api.Admission](t)(c.Admit(ctx, pair("net", vnet.Mbit), false)).Lease.ID()
	must[vnet.Lease](t)(c.WaitReady(ctx, id))
	_, err := r.as(4242).SetDrained(ctx, "h1", true)
	wantError(t, "a tenant drains a host", err, api.ErrForbidden)
	_, err = c.SetDrained(ctx, "h9", true)
	wantError(t, "a host that is not there", err, api.ErrNotFound)
	of := must[api.Drained](t)(c.SetDrained(ctx, "h1", true))
	if len(of.Stays) != 1 || of.Stays[0].Lease != id || len(of.Stays[0].Reasons) == 0 || len(of.Moved) > 0 {
		t.Errorf("drained: %+v", of)
	}
	r.stop()
	r.start()
	if hosts := must[[]api.Host](t)(c.Hosts(ctx)); !hosts[0].Drained || hosts[1].Drained {
		t.Errorf("hosts are %+v", hosts)
	}
	var refused *vnet.Rejection
	if _, err := c.Admit(ctx, pair("more", vnet.Mbit), false); !errors.As(err, &refused) {
		t.Errorf("a drained host takes something new: %v", err)
	}
	must[api.Drained](t)(c.SetDrained(ctx, "h1", false))
	must[api.Admission](t)(c.Admit(ctx, pair("more", vnet.Mbit), false))
}
