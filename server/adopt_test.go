package server

import (
	"os"
	"path/filepath"
	"testing"

	"sublet/lease/api"
	"sublet/plan"
	"sublet/report"
)

// TestStoreHasAnIdentity: every plan bears it, and servers of another store are
// told from those of the same.
func TestStoreHasAnIdentity(t *testing.T) {
	r := newRig(t)
	ctx, c := within(t), r.as(os.Geteuid())
	first := must[plan.Host](t)(c.PlanNow(ctx, "h1"))
	if first.Store == "" || first.Term == "" || len(first.Terms) != 1 || first.Host != "h1" {
		t.Errorf("a plan of %+v", first)
	}
	r.stop()
	r.start()
	if again := must[plan.Host](t)(c.PlanNow(ctx, "h1")); again.Store != first.Store || !again.Follows(first.Origin()) {
		t.Errorf("after a restart %+v, before %+v", again, first)
	}
	r.stop()
	if err := os.RemoveAll(filepath.Join(r.dir, "data")); err != nil {
		t.Fatal(err)
	}
	r.start()
	if other := must[plan.Host](t)(c.PlanNow(ctx, "h1")); other.Store == first.Store || other.Follows(first.Origin()) {
		t.Errorf("of an empty store %+v, before %+v", other, first)
	}
}

// TestAdopt: the operator sees who keeps another plan, and has it follow.
func TestAdopt(t *testing.T) {
	r := newRig(t)
	ctx, c := within(t), r.as(os.Geteuid())
	wantError(t, "a tenant adopts", r.as(4242).Adopt(ctx, "h1"), api.ErrForbidden)
	wantError(t, "a host that is not there", c.Adopt(ctx, "h9"), api.ErrNotFound)
	wantError(t, "nothing was heard of", c.Adopt(ctx, "h1"), api.ErrConflict)

	held := report.Held{Origin: plan.Origin{Term: "x1", Revision: 4031}, Store: "x", Why: "another store"}
	kept := report.Report{Host: "h1", Revision: 4031, Tried: 4031, Plan: &held.Origin, Held: &held}
	if err := c.Report(ctx, kept); err != nil {
		t.Fatal(err)
	}
	if hosts := must[[]api.Host](t)(c.Hosts(ctx)); hosts[0].Held == nil || *hosts[0].Held != held || hosts[1].Held != nil {
		t.Errorf("hosts %+v", hosts)
	}
	before := must[plan.Host](t)(c.PlanNow(ctx, "h1"))
	if err := c.Adopt(ctx, "h1"); err != nil {
		t.Fatal(err)
	}
	r.stop()
	r.start() // what the operator said is kept
	p := must[plan.Host](t)(c.Plan(ctx, "h1", before.Origin()))
	if !p.Adopts(held.Origin) || p.Adopts(plan.Origin{}) || !p.Half || p.Revision <= held.Revision {
		t.Errorf("the plan is %+v", p)
	}
	var origin plan.Origin
	theirs := must[plan.Host](t)(c.PlanNow(ctx, "h2"))
	for _, done := range []plan.Host{theirs, p} { // nothing comes before all have removed what goes
		origin = done.Origin()
		if err := c.Report(ctx, report.Report{Host: done.Host, Revision: done.Revision, Tried: done.Revision, Plan: &origin}); err != nil {
			t.Fatal(err)
		}
	}
	if next := must[plan.Host](t)(c.Plan(ctx, "h1", origin)); next.Half || next.Adopt != nil || !next.Follows(origin) {
		t.Errorf("the whole plan is %+v", next)
	}
	wantError(t, "adopted already", c.Adopt(ctx, "h1"), api.ErrConflict)
}
