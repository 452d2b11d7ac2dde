package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/plan"
	"sublet/trust"
	"sublet/vnet"
)

// wantRefused wants a refusal for a reason, with an offer or without.
func wantRefused(t *testing.T, err error, reason string, offered bool) *vnet.Rejection {
	t.Helper()
	var r *vnet.Rejection
	if !errors.As(err, &r) || !slices.Contains(r.Reasons, reason) || (r.Offer != nil) != offered {
		t.Fatalf("got %+v %v, want %q", r, err, reason)
	}
	return r
}

func newRigWith(t *testing.T, p vnet.Policy) *rig {
	r := newRig(t)
	r.stop()
	r.policy = &p
	r.start()
	return r
}

func TestQuotas(t *testing.T) {
	r := newRigWith(t, vnet.Policy{Others: vnet.OthersAllowed,
		Default: vnet.Quota{vnet.QuotaNodes: 4, vnet.QuotaLength: int64(time.Hour), vnet.QuotaHorizon: int64(24 * time.Hour)},
		Tenants: []vnet.TenantPolicy{{Name: "bin", Quota: vnet.Quota{vnet.QuotaLeases: 0}}, {UIDs: &[2]uint32{3, 3}, Quota: vnet.Quota{vnet.QuotaLength: vnet.Unlimited}}}})
	ctx, daemon := within(t), r.as(1)
	_, err := daemon.Admit(ctx, pair("n0", vnet.Mbit), false)
	wantRefused(t, err, "quota length of daemon is 1h: no end asked", true)
	proposal := must[api.Proposal](t)(daemon.Offers(ctx, pair("n0", vnet.Mbit)))
	if proposal.Admitted || proposal.Refusal == nil || proposal.Refusal.Offer == nil || proposal.Refusal.Offer.For != time.Hour {
		t.Errorf("offers says %+v", proposal.Refusal)
	}
	first := must[api.Admission](t)(daemon.Admit(ctx, pair("n0", vnet.Mbit), true))
	if length := first.Lease.Window.End.Sub(first.Lease.Window.Start); length != time.Hour || len(first.Changes) != 1 {
		t.Errorf("the offer that was taken lasts %s, changed in %v", length, first.Changes)
	}
	hour := func(name string, after time.Duration) vnet.Request {
		req := pair(name, vnet.Mbit)
		req.For = time.Hour
		if after > 0 {
			req.Start = time.Now().Add(after)
		}
		return req
	}
	must[api.Admission](t)(daemon.Admit(ctx, hour("n1", 0), false))
	refusal := wantRefused(t, second(daemon.Admit(ctx, hour("n2", 0), false)), "quota nodes of daemon is 4: 4 used, 2 asked", true)
	must[api.Admission](t)(daemon.Admit(ctx, *refusal.Offer, false))
	must[api.Admission](t)(daemon.Admit(ctx, hour("n3", 3*time.Hour), false))
	wantRefused(t, second(daemon.Admit(ctx, hour("n4", 48*time.Hour), false)), "quota horizon of daemon is 1d: 2d asked", true)
	wantRefused(t, second(r.as(2).Admit(ctx, hour("n0", 0), false)), "quota leases of bin is 0: 0 used, 1 asked", false)
	must[api.Admission](t)(r.as(3).Admit(ctx, pair("n0", vnet.Mbit), false))
	asOperator := pair("n9", vnet.Mbit)
	asOperator.Tenant = "daemon"
	must[api.Admission](t)(r.as(0).Admit(ctx, asOperator, false))
}

// second leaves out an answer.
func second[T any](_ T, err error) error { return err }

// What the book offers instead keeps the quota too.
func TestOffersKeepTheQuota(t *testing.T) {
	r := newRigWith(t, vnet.Policy{Others: vnet.OthersAllowed, Default: vnet.Quota{vnet.QuotaHorizon: int64(time.Hour)}})
	ctx := within(t)
	taken := pair("taken", 900*vnet.Mbit)
	taken.For = 2 * time.Hour
	must[api.Admission](t)(r.as(0).Admit(ctx, taken, false))
	req := pair("net", 900*vnet.Mbit)
	req.For, req.Negotiable = time.Hour, []vnet.Axis{vnet.AxisStart}
	_, err := r.as(1).Admit(ctx, req, false)
	var refusal *vnet.Rejection
	if !errors.As(err, &refusal) || refusal.Offer != nil || refusal.Never == "" {
		t.Errorf("offered beyond the horizon: %+v", refusal)
	}
}

func TestPolicyShows(t *testing.T) {
	r := newRigWith(t, vnet.Policy{Others: vnet.OthersRefused, Tenants: []vnet.TenantPolicy{{Name: "daemon", Quota: vnet.Quota{vnet.QuotaNodes: 4}}}})
	ctx := within(t)
	must[api.Admission](t)(r.as(1).Admit(ctx, pair("net", vnet.Mbit), false))
	own := must[[]api.PolicyView](t)(r.as(1).Policy(ctx, "", false))
	if len(own) != 1 || own[0].Tenant != "daemon" || own[0].Accounts[0].Quota[vnet.QuotaNodes] != 4 || own[0].Accounts[0].Now[vnet.QuotaNodes] != 2 ||
		own[0].Accounts[0].Quota[vnet.QuotaLeases] != 64 || own[0].Accounts[0].Peak[vnet.QuotaBandwidth] != 2e6 {
		t.Errorf("daemon is shown %+v", own)
	}
	_, err := r.as(2).Policy(ctx, "", true)
	wantError(t, "all tenants' limits", err, api.ErrForbidden)
	_, err = r.as(2).Policy(ctx, "daemon", false)
	wantError(t, "another tenant's limits", err, api.ErrForbidden)
	wantRefused(t, second(r.as(2).Admit(ctx, pair("net", vnet.Mbit), false)), "bin is none of the tenants that the operator's policy names", false)
	if operator := must[[]api.PolicyView](t)(r.as(0).Policy(ctx, "", false)); len(operator) != 1 || len(operator[0].Accounts[0].Quota) != 0 || operator[0].Refused {
		t.Errorf("the operator is limited to %+v", operator)
	}
	if all := must[[]api.PolicyView](t)(r.as(0).Policy(ctx, "", true)); len(all) != 1 || all[0].Tenant != "daemon" {
		t.Errorf("the operator is shown %+v", all)
	}
	must[[]vnet.Lease](t)(r.as(2).Leases(ctx)) // who may lease nothing may look
}

// A policy that comes later holds for what is asked from then on, and sets the
// ceilings of what runs.
func TestPolicyChanges(t *testing.T) {
	r := newRig(t)
	ctx := within(t)
	must[api.Admission](t)(r.as(1).Admit(ctx, pair("n0", vnet.Mbit), false))
	ceiling := func(host vnet.HostID) vnet.Bytes {
		p := must[plan.Host](t)(r.as(0).PlanNow(ctx, host))
		return plan.Of[plan.VNode](p)[0].Memory
	}
	if got := [2]vnet.Bytes{ceiling("h1"), ceiling("h2")}; got != [2]vnet.Bytes{64 * vnet.MiB, 16 * vnet.GiB} {
		t.Errorf("memory is limited to %s, want what is stated, and a quarter of the host's", got)
	}
	if err := r.server.SetPolicy(vnet.Policy{Others: vnet.OthersAllowed, Default: vnet.Quota{vnet.QuotaLeases: 1},
		Nodes: vnet.NodeDefaults{Memory: vnet.GiB, CPU: 500, Processes: 100}}); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, second(r.as(1).Admit(ctx, pair("n1", vnet.Mbit), false)), "quota leases of daemon is 1: 1 used, 1 asked", false)
	if got := [2]vnet.Bytes{ceiling("h1"), ceiling("h2")}; got != [2]vnet.Bytes{64 * vnet.MiB, vnet.GiB} {
		t.Errorf("memory is limited to %s under the new policy", got)
	}
	p := must[plan.Host](t)(r.as(0).PlanNow(ctx, "h2"))
	if n := plan.Of[plan.VNode](p)[0]; n.CPU != 500 || n.Processes != 100 {
		t.Errorf("the node without limits has %s", n)
	}
	if err := r.server.SetPolicy(vnet.Policy{Others: "perhaps"}); err == nil {
		t.Error("a policy that is wrong was taken")
	}
	wantRefused(t, second(r.as(1).Admit(ctx, pair("n1", vnet.Mbit), false)), "quota leases of daemon is 1: 1 used, 1 asked", false)
}

func TestAsksPerSecond(t *testing.T) {
	r := newRigWith(t, vnet.Policy{Others: vnet.OthersAllowed, Default: vnet.Quota{vnet.QuotaAsks: 1}})
	var problem *api.Problem
	for i := range 4 {
		if _, err := r.as(1).Offers(within(t), pair(fmt.Sprint("n", i), vnet.Mbit)); errors.As(err, &problem) {
			break
		}
	}
	if problem == nil || problem.Status != 429 {
		t.Error("more than one ask a second is answered")
	}
}

// useSubordinates replaces /etc/subuid.
func useSubordinates(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "subuid")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	trust.SetSubordinates(path)
	t.Cleanup(func() { trust.SetSubordinates("/etc/subuid") })
}

// The users that one may use in containers do not multiply what they may have,
// and see nothing of one another's.
func TestSubordinatesShareAQuota(t *testing.T) {
	useSubordinates(t, "daemon:165536:65536\n")
	r := newRigWith(t, vnet.Policy{Others: vnet.OthersAllowed, Default: vnet.Quota{vnet.QuotaLeases: 2}})
	ctx := within(t)
	must[api.Admission](t)(r.as(1).Admit(ctx, pair("n0", vnet.Mbit), false))
	must[api.Admission](t)(r.as(165536).Admit(ctx, pair("n1", vnet.Mbit), false))
	for _, uid := range []int{1, 165536, 231071} {
		wantRefused(t, second(r.as(uid).Admit(ctx, pair("n2", vnet.Mbit), false)), "quota leases of daemon is 2: 2 used, 1 asked", false)
	}
	if leases := must[[]vnet.Lease](t)(r.as(165536).Leases(ctx)); len(leases) != 1 || leases[0].Request.Tenant != "uid165536" {
		t.Errorf("a subordinate user sees %v", leases)
	}
	must[api.Admission](t)(r.as(231072).Admit(ctx, pair("n0", vnet.Mbit), false))
	if !strings.Contains(r.log.String(), "uid165536") {
		t.Error("the log does not say who asked")
	}
}

// Tenants see how much is free, not how many others have the rest.
func TestOthersAreNotCounted(t *testing.T) {
	r := newRig(t)
	ctx := within(t)
	for i, uid := range []int{1, 2, 2} {
		must[api.Admission](t)(r.as(uid).Admit(ctx, pair(fmt.Sprint("n", i), 300*vnet.Mbit), false))
	}
	must[api.Admission](t)(r.as(3).Admit(ctx, pair("best-effort", 0), false))
	for uid, own := range map[int]int{0: 4, 1: 1, 2: 2, 4: 0} {
		c := r.as(uid)
		host := must[[]api.Host](t)(c.Hosts(ctx))[0]
		if host.Nodes != own || host.CPUFree != host.CPU-400 || (host.Revision == 0) != (uid != 0) {
			t.Errorf("user %d sees host %+v", uid, host)
		}
		link := must[[]api.Link](t)(c.Links(ctx))[0]
		if link.Leases != own || link.Links != own || link.Booked != 900*vnet.Mbit || (link.BestEffort != 0) != (uid == 0) {
			t.Errorf("user %d sees link %+v", uid, link)
		}
		now := vnet.Window{Start: time.Now()}
		load := must[api.Calendar](t)(c.Calendar(ctx, now)).Loads[0]
		step := load.Steps[len(load.Steps)-1]
		if step.Booked != 900*vnet.Mbit || (step.Leases != 0) != (uid == 0) {
			t.Errorf("user %d sees step %+v", uid, step)
		}
		refusal := must[api.Proposal](t)(c.Offers(ctx, pair("more", 300*vnet.Mbit))).Refusal
		if refusal == nil || strings.Contains(fmt.Sprint(refusal.Reasons), "lease") {
			t.Errorf("user %d is refused with %+v", uid, refusal)
		}
	}
}

// The turns of subordinate users are those of their owner.
func TestSubordinatesShareATurn(t *testing.T) {
	d := newDeciders()
	leave := must[func()](t)(d.enter(t.Context(), trust.Caller{Tenant: "alice", Account: "alice"}))
	defer leave()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.enter(ctx, trust.Caller{Tenant: "uid165536", Account: "alice"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second turn for alice: %v", err)
	}
	other := must[func()](t)(d.enter(t.Context(), trust.Caller{Tenant: "bob", Account: "bob"}))
	other()
}

// A group without members is the machine's, and counts what all in it have.
func TestGroupsOfTheMachine(t *testing.T) {
	r := newRigWith(t, vnet.Policy{Others: vnet.OthersRefused, Groups: []vnet.GroupPolicy{
		{Name: "daemon", Each: vnet.Quota{vnet.QuotaLeases: 5}, Together: vnet.Quota{vnet.QuotaLeases: 1}}}})
	ctx := within(t)
	must[api.Admission](t)(r.as(1).Admit(ctx, pair("n0", vnet.Mbit), false))
	r.stop()
	r.start() // nobody was asked for anything since
	wantRefused(t, second(r.as(1).Admit(ctx, pair("n1", vnet.Mbit), false)), "quota leases of group daemon is 1: 1 used, 1 asked", false)
	wantRefused(t, second(r.as(2).Admit(ctx, pair("n1", vnet.Mbit), false)), "bin is none of the tenants that the operator's policy names", false)
}
