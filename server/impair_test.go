package server

import (
	"os"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/plan"
	"sublet/vnet"
)

// TestImpairWhileItRuns: the owner of a running network changes a link, which
// reaches the hosts and outlives the server; nobody else does, and what is wrong
// changes nothing.
func TestImpairWhileItRuns(t *testing.T) {
	r := newRig(t)
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	l := must[api.Admission](t)(c.Admit(ctx, pair("net", vnet.Mbit), false)).Lease
	id, link := l.ID(), l.Request.Links[0].Name
	must[vnet.Lease](t)(c.WaitReady(ctx, id))
	both := [2]vnet.Impairment{{Delay: 20 * time.Millisecond, Loss: 10_000}, {}}

	_, err := r.as(4242).Impair(ctx, id, link, both)
	wantError(t, "another tenant impairs a link", err, api.ErrNotFound)
	if _, err := c.Impair(ctx, id, "nolink", both); err == nil {
		t.Error("a link that is not there is impaired")
	}
	if _, err := c.Impair(ctx, id, link, [2]vnet.Impairment{{Jitter: time.Second}, {}}); err == nil {
		t.Error("jitter without delay is taken")
	}
	if l := must[vnet.Lease](t)(c.Lease(ctx, id)); len(l.Impaired) != 0 {
		t.Errorf("what was refused is kept: %+v", l.Impaired)
	}

	must[vnet.Lease](t)(c.Impair(ctx, id, link, both))
	planned := func() (got vnet.Impairment) {
		for _, host := range []vnet.HostID{"h1", "h2"} {
			for _, item := range plan.Of[plan.VxLink](must[plan.Host](t)(c.PlanNow(ctx, host))) {
				for _, end := range item.Ends {
					if end.Impair != (vnet.Impairment{}) {
						got = end.Impair
					}
				}
			}
		}
		return got
	}
	becomes := func(when string, want vnet.Impairment) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); planned() != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s the plan has %s, want %s", when, planned(), want)
			}
		}
	}
	becomes("before a restart", both[0])
	r.stop()
	r.start()
	r.agents() // those of before say nothing new for half a minute
	becomes("after a restart", both[0])
	must[vnet.Lease](t)(c.Impair(ctx, id, link, [2]vnet.Impairment{}))
	becomes("switched off", vnet.Impairment{})
	must[vnet.Lease](t)(c.Release(ctx, id))
	_, err = c.Impair(ctx, id, link, both)
	wantError(t, "a lease that ended", err, api.ErrConflict)
}

// TestLinkStateWhileItRuns: the owner of a running network takes a link down,
// which reaches the hosts and outlives the server; nobody else does.
func TestLinkStateWhileItRuns(t *testing.T) {
	r := newRig(t)
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	l := must[api.Admission](t)(c.Admit(ctx, pair("net", vnet.Mbit), false)).Lease
	id, link := l.ID(), l.Request.Links[0].Name
	must[vnet.Lease](t)(c.WaitReady(ctx, id))
	_, err := r.as(4242).SetLinkState(ctx, id, link, true)
	wantError(t, "another tenant takes a link down", err, api.ErrNotFound)
	if _, err := c.SetLinkState(ctx, id, "nolink", true); err == nil {
		t.Error("a link that is not there is taken down")
	}
	must[vnet.Lease](t)(c.SetLinkState(ctx, id, link, true))
	planned := func() (down int) {
		for _, host := range []vnet.HostID{"h1", "h2"} {
			for _, item := range plan.Of[plan.VxLink](must[plan.Host](t)(c.PlanNow(ctx, host))) {
				for _, end := range item.Ends {
					if end.Down {
						down++
					}
				}
			}
		}
		return down
	}
	becomes := func(when string, want int) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); planned() != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s %d ends are planned to be down, want %d", when, planned(), want)
			}
		}
	}
	becomes("before a restart", 2)
	r.stop()
	r.start()
	r.agents()
	becomes("after a restart", 2)
	must[vnet.Lease](t)(c.SetLinkState(ctx, id, link, false))
	becomes("taken up", 0)
	must[vnet.Lease](t)(c.Release(ctx, id))
	_, err = c.SetLinkState(ctx, id, link, true)
	wantError(t, "a lease that ended", err, api.ErrConflict)
}
