package server

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

// TestPause: the owner of a running network pauses it and lets it go on, nobody
// else does; that is an event, outlives the server, and refuses commands; rates that
// others took meanwhile are offered as far as they are there.
func TestPause(t *testing.T) {
	r := newRig(t)
	r.stop()
	r.events = t.TempDir()
	r.start()
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	all := r.sub.Links[0].Leasable()
	request := pair("net", all)
	l := must[api.Admission](t)(c.Admit(ctx, request, false)).Lease
	id := l.ID()
	is := func(want vnet.State) {
		t.Helper()
		if l := must[vnet.Lease](t)(c.WaitReady(ctx, id)); l.State != want || (l.Paused != nil) != (want == vnet.Paused) {
			t.Errorf("it is %s (%+v), not %s", l.State, l.Paused, want)
		}
	}
	is(vnet.Running)
	_, err := r.as(4242).Pause(ctx, id, false)
	wantError(t, "another tenant pauses it", err, api.ErrNotFound)
	must[vnet.Lease](t)(c.Pause(ctx, id, true))
	is(vnet.Paused)
	_, err = r.as(4242).Resume(ctx, id)
	wantError(t, "another tenant lets it go on", err, api.ErrNotFound)
	_, err = c.Check(ctx, id, 0, func(string) {})
	wantError(t, "it is measured", err, api.ErrConflict)
	r.stop()
	r.start()
	is(vnet.Paused)

	must[api.Admission](t)(c.Admit(ctx, pair("other", all/2), false))
	var refused *vnet.Rejection
	if _, err := c.Resume(ctx, id); !errors.As(err, &refused) || refused.Offer == nil {
		t.Fatalf("there is room although it was given away: %v", err)
	}
	is(vnet.Paused)
	paused := must[vnet.Lease](t)(c.Lease(ctx, id))
	must[api.Updated](t)(c.Update(ctx, paused, api.Update{Request: *refused.Offer}))
	is(vnet.Paused)
	must[vnet.Lease](t)(c.Resume(ctx, id))
	is(vnet.Running)
	events := must[[]vnet.Happening](t)(c.Events(ctx, id, time.Time{}, 0))
	if !slices.ContainsFunc(events, func(h vnet.Happening) bool { return h.Kind == "lease" && h.State == string(vnet.Paused) }) {
		t.Errorf("no event says that it was paused: %+v", events)
	}
}
