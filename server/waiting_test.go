package server

import (
	"errors"
	"os"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

// A request that was refused waits, over a restart too; when something is released it
// is told that it fits, or admitted, as was asked.
func TestRefusedRequestsWait(t *testing.T) {
	r := newRig(t)
	r.stop()
	r.events = t.TempDir()
	r.start()
	r.agents()
	ctx, c := within(t), r.as(1)
	big := must[api.Admission](t)(c.Admit(ctx, pair("big", 900*vnet.Mbit), false)).Lease
	ask := func(name vnet.VNetID, then vnet.WaitingFor) (api.Admission, error) {
		return c.Ask(ctx, api.Ask{Request: pair(string(name), 400*vnet.Mbit), Waiting: then})
	}
	for name, then := range map[vnet.VNetID]vnet.WaitingFor{"told": vnet.WaitingOffer, "let-in": vnet.WaitingAdmit} {
		if a := must[api.Admission](t)(ask(name, then)); a.Waiting == nil || a.Waiting.Why == "" || a.Waiting.Owner != 1 {
			t.Fatalf("%s: %+v", name, a.Waiting)
		}
	}
	if _, err := ask("x", "for ever"); err == nil {
		t.Error("waits for nothing that is known")
	}
	if others := must[[]vnet.Waiting](t)(r.as(2).Waiting(ctx)); len(others) != 0 {
		t.Errorf("another tenant sees %v", others)
	}
	r.server.tryWaiting(ctx)
	r.stop()
	r.start()
	r.agents()
	c = r.as(1)
	if list := must[[]vnet.Waiting](t)(c.Waiting(ctx)); len(list) != 2 || !list[0].Fits.IsZero() || !list[1].Fits.IsZero() {
		t.Fatalf("after a restart wait %+v", list)
	}
	must[vnet.Lease](t)(c.Release(ctx, big.ID()))
	eventually(t, "nothing was admitted, or told", func() bool {
		l, err := c.Lease(ctx, vnet.LeaseID{Tenant: "daemon", Network: "let-in"})
		list, _ := c.Waiting(ctx)
		return err == nil && l.Owner == 1 && len(list) == 1 && list[0].ID().Network == "told" && !list[0].Fits.IsZero()
	})
	states := make(map[string]bool)
	for _, h := range must[[]vnet.Happening](t)(c.Events(ctx, vnet.LeaseID{}, time.Time{}, 0)) {
		if h.Kind == kindWaiting {
			states[string(h.Lease.Network)+" "+h.State] = true
		}
	}
	if len(states) != 4 || !states["told waits"] || !states["told offer possible"] || !states["let-in waits"] || !states["let-in admitted"] {
		t.Errorf("told %v", states)
	}
	if err := r.as(2).EndWaiting(ctx, vnet.LeaseID{Tenant: "daemon", Network: "told"}); err == nil {
		t.Error("another tenant ended it")
	}
	if err := c.EndWaiting(ctx, vnet.LeaseID{Tenant: "daemon", Network: "told"}); err != nil {
		t.Error(err)
	}
	if err := c.EndWaiting(ctx, vnet.LeaseID{Tenant: "daemon", Network: "told"}); err == nil {
		t.Error("what does not wait was ended")
	}
}

// A tenant has so many that wait, and one that is asked for again and admitted does
// not wait any more.
func TestWaitingIsBounded(t *testing.T) {
	r := newRig(t)
	r.agents()
	ctx, c := within(t), r.as(1)
	for i := range mostWaitingOfTenant + 1 {
		_, err := c.Ask(ctx, api.Ask{Request: pair("net"+string(rune('a'+i)), 2*vnet.Gbit), Waiting: vnet.WaitingOffer})
		if full := i == mostWaitingOfTenant; (err != nil) != full {
			t.Errorf("request %d that waits: %v", i, err)
		}
	}
	must[api.Admission](t)(c.Admit(ctx, pair("neta", vnet.Mbit), false))
	list := must[[]vnet.Waiting](t)(r.as(os.Geteuid()).Waiting(ctx))
	if len(list) != mostWaitingOfTenant-1 {
		t.Errorf("%d wait", len(list))
	}
	var refusal *vnet.Rejection
	if _, err := c.Ask(ctx, api.Ask{Request: pair("other", 2*vnet.Gbit)}); !errors.As(err, &refusal) {
		t.Errorf("who does not want to wait is told %v", err)
	}
}
