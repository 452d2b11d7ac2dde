package server

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/lease/rollout"
	"sublet/plan"
	"sublet/vnet"
)

// TestStageOnCommand: the owner of a running network begins a stage, which hosts
// carry out, which is an event, and which outlives the server; nobody else does.
func TestStageOnCommand(t *testing.T) {
	r := newRig(t)
	r.stop()
	r.events = t.TempDir()
	r.start()
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	request := pair("net", vnet.Mbit)
	link := request.Links[0].Name
	faster := [2]vnet.Bandwidth{vnet.Static(2 * vnet.Mbit), vnet.Static(2 * vnet.Mbit)}
	request.Stages = []vnet.Stage{{Name: "fast", OnCommand: true, Links: map[string][2]vnet.Bandwidth{link: faster}}}
	l := must[api.Admission](t)(c.Admit(ctx, request, false)).Lease
	id := l.ID()
	must[vnet.Lease](t)(c.WaitReady(ctx, id))

	_, err := r.as(4242).BeginStage(ctx, id, "fast")
	wantError(t, "another tenant begins a stage", err, api.ErrNotFound)
	var field *vnet.FieldError
	if _, err := c.BeginStage(ctx, id, "slow"); !errors.As(err, &field) {
		t.Errorf("a stage that is not there: %v", err)
	}
	begun := request
	begun.Network, begun.Stages = "begun", []vnet.Stage{{Name: "fast", OnCommand: true, After: time.Second}}
	if _, err := c.Admit(ctx, begun, false); !errors.As(err, &field) {
		t.Errorf("a request that says when a stage on command began: %v", err)
	}
	must[vnet.Lease](t)(c.BeginStage(ctx, id, "fast"))
	runs := func(when string) {
		t.Helper()
		l := must[vnet.Lease](t)(c.WaitReady(ctx, id))
		if l.Stage != 0 || l.Rates[link][0] != faster[0].Min {
			t.Errorf("%s stage %d runs at %s", when, l.Stage, l.Rates[link][0])
		}
	}
	runs("after the command")
	must[vnet.Lease](t)(c.BeginStage(ctx, id, "fast"))
	events := must[[]vnet.Happening](t)(c.Events(ctx, id, time.Time{}, 0))
	if n := len(slices.DeleteFunc(events, func(h vnet.Happening) bool { return h.Kind != "stage" || h.Why != "fast" })); n != 1 {
		t.Errorf("%d events of the stage", n)
	}
	r.stop()
	r.start()
	runs("after a restart")
}

// TestStageBeginsAtOneInstant: hosts that are handed a plan with a stage are told when
// to begin, which is no member of the plan.
func TestStageBeginsAtOneInstant(t *testing.T) {
	r := newRig(t)
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	request := pair("net", vnet.Mbit)
	link := request.Links[0].Name
	for i := range 8 { // on a busy machine hosts may be asked too late
		rate := vnet.Static(vnet.Rate(2+i) * vnet.Mbit)
		request.Stages = append(request.Stages, vnet.Stage{Name: fmt.Sprint("s", i), OnCommand: true, Links: map[string][2]vnet.Bandwidth{link: {rate, rate}}})
	}
	id := must[api.Admission](t)(c.Admit(ctx, request, false)).Lease.ID()
	l := must[vnet.Lease](t)(c.WaitReady(ctx, id))
	hosts := slices.Compact(slices.Sorted(maps.Values(l.Mapping.Nodes)))
	if len(hosts) < 2 {
		t.Fatalf("it is on %v alone", hosts)
	}
	for _, stage := range request.Stages {
		must[vnet.Lease](t)(c.BeginStage(ctx, id, stage.Name))
		begins := must[plan.Host](t)(c.PlanNow(ctx, hosts[0])).Begins
		if time.Until(begins) > rollout.Lead {
			t.Errorf("it waits %s", time.Until(begins))
		}
		must[vnet.Lease](t)(c.WaitReady(ctx, id))
		if !begins.IsZero() {
			return
		}
	}
	t.Error("no host waits")
}
