package server

import (
	"errors"
	"os"
	"slices"
	"testing"

	"sublet/lease/api"
	"sublet/vnet"
)

// TestAnotherSubstrateWhileItRuns: the operator alone changes it; who would be
// displaced is said and refused first, and hosts follow.
func TestAnotherSubstrateWhileItRuns(t *testing.T) {
	r := newRig(t)
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	old := must[api.Admission](t)(c.Admit(ctx, pair("old", 600*vnet.Mbit), false)).Lease.ID()
	young := must[api.Admission](t)(c.Admit(ctx, pair("young", 300*vnet.Mbit), false)).Lease.ID()
	must[vnet.Lease](t)(c.WaitReady(ctx, old))
	must[vnet.Lease](t)(c.WaitReady(ctx, young))
	was := must[vnet.Substrate](t)(c.Substrate(ctx))
	narrow := was
	narrow.Links = slices.Clone(was.Links)
	narrow.Links[0].Capacity = 800 * vnet.Mbit

	_, err := r.as(4242).SetSubstrate(ctx, api.SubstrateAsk{Substrate: narrow})
	wantError(t, "a tenant changes the substrate", err, api.ErrForbidden)
	said := must[api.Aftermath](t)(c.SetSubstrate(ctx, api.SubstrateAsk{Substrate: narrow, DryRun: true}))
	if len(said.Lost) != 1 || said.Lost[0].Lease != young || len(said.Lost[0].Reasons) == 0 || len(said.Moved) > 0 {
		t.Errorf("would be displaced: %+v", said)
	}
	var refused *vnet.Rejection
	if _, err := c.SetSubstrate(ctx, api.SubstrateAsk{Substrate: narrow}); !errors.As(err, &refused) {
		t.Errorf("a lease would end, and %v", err)
	}
	if got := must[vnet.Substrate](t)(c.Substrate(ctx)); got.Links[0].Capacity != vnet.Gbit {
		t.Errorf("what was refused, or only tried, is so: %s", got.Links[0].Capacity)
	}
	must[api.Aftermath](t)(c.SetSubstrate(ctx, api.SubstrateAsk{Substrate: narrow, Displace: true}))
	if l := must[vnet.Lease](t)(c.Lease(ctx, young)); l.State != vnet.Ended || l.Life.Why == "" {
		t.Errorf("%s is %s: %s", young, l.State, l.Life.Why)
	}
	if l := must[vnet.Lease](t)(c.Lease(ctx, old)); !l.State.Up() {
		t.Errorf("%s is %s", old, l.State)
	}
	if _, err := c.Admit(ctx, pair("more", 300*vnet.Mbit), false); !errors.As(err, &refused) {
		t.Errorf("more than the new capacity: %v", err)
	}
	if err := c.WaitGone(ctx, young); err != nil {
		t.Error(err)
	}
	if after := must[api.Aftermath](t)(c.SetSubstrate(ctx, api.SubstrateAsk{Substrate: was})); len(after.Moved)+len(after.Lost) > 0 {
		t.Errorf("a wider substrate displaces %+v", after)
	}
	must[api.Admission](t)(c.Admit(ctx, pair("more", 300*vnet.Mbit), false))
}
