package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

// allKept finds every direction of a lease's links kept.
func allKept(_ context.Context, job CheckJob) (vnet.Verdict, error) {
	job.Progress("looking")
	v := vnet.Verdict{Network: "forged", OK: true, Time: time.Unix(1, 0)}
	for _, link := range job.Lease.Topology().Links {
		for _, d := range vnet.Directions {
			v.Links = append(v.Links, vnet.LinkVerdict{Name: link.Name, From: link.Ends[d], To: link.Ends[d.Opposite()], OK: true, Why: "kept"})
		}
	}
	return v, nil
}

// running leases a pair and waits until it runs.
func (r *rig) running(c *api.Client, req vnet.Request) vnet.Lease {
	r.t.Helper()
	a := must[api.Admission](r.t)(c.Admit(within(r.t), req, false))
	r.agents()
	return must[vnet.Lease](r.t)(c.WaitReady(within(r.t), a.Lease.ID()))
}

// What a client says of their own lease is no verdict.
func TestNobodyButTheServerJudges(t *testing.T) {
	r := newRig(t)
	tenant := r.as(1)
	id := r.running(tenant, pair("net", vnet.Mbit)).ID()
	forged := vnet.Verdict{Network: "net", OK: true, Time: time.Unix(1, 0)}
	for _, c := range []*api.Client{tenant, r.as(0)} {
		if err := send(within(t), c, http.MethodPut, api.LeasePath(id)+"/verdict", forged); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("a forged verdict: %v", err)
		}
	}
	if l := must[vnet.Lease](t)(tenant.Lease(within(t), id)); l.Verdict != nil {
		t.Errorf("the lease has a verdict: %+v", l.Verdict)
	}
	if err := send(within(t), tenant, http.MethodPost, api.LeasePath(id)+"/check", forged); err == nil || !strings.Contains(err.Error(), "no such field") {
		t.Errorf("a verdict as the body of a check: %v", err)
	}
}

func TestVerdictIsTheServers(t *testing.T) {
	r := newRig(t)
	tenant := r.as(1)
	began := time.Now().Add(-time.Second)
	l := r.running(tenant, pair("net", vnet.Mbit))
	var phases []string
	v := must[vnet.Verdict](t)(tenant.Check(within(t), l.ID(), time.Second, func(p string) { phases = append(phases, p) }))
	if v.Network != "net" || v.Serial != l.Serial || v.Digest != l.Digest() || v.Time.Before(began) || v.Stale || !v.OK || len(v.Links) != 2 {
		t.Errorf("verdict %+v", v)
	}
	if len(phases) != 1 || phases[0] != "looking" {
		t.Errorf("told of %q", phases)
	}
	response := must[*http.Response](t)(over(tenant).Do(must[*http.Request](t)(http.NewRequestWithContext(within(t), http.MethodPost, "http://sublet"+api.LeasePath(l.ID())+"/check", nil))))
	defer response.Body.Close()
	body := must[[]byte](t)(io.ReadAll(response.Body))
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), `{"network":"net"`) {
		t.Errorf("without a body, plain JSON: %s %s", response.Status, body)
	}
}

// A verdict is about the rates that were measured.
func TestVerdictGetsStale(t *testing.T) {
	r := newRig(t)
	c := r.as(0)
	open := pair("net", 100*vnet.Mbit)
	for d := range open.Links[0].Bandwidth {
		open.Links[0].Bandwidth[d].Max = vnet.Gbit
	}
	id := r.running(c, open).ID()
	must[vnet.Verdict](t)(c.Check(within(t), id, 0, func(string) {}))
	r.running(c, pair("other", 500*vnet.Mbit))
	if l := must[vnet.Lease](t)(c.Lease(within(t), id)); l.Verdict == nil || !l.Verdict.Stale {
		t.Errorf("after its rate fell: %+v", l.Verdict)
	}
	must[vnet.Lease](t)(c.Release(within(t), vnet.LeaseID{Tenant: "root", Network: "other"}))
	if err := c.WaitGone(within(t), vnet.LeaseID{Tenant: "root", Network: "other"}); err != nil {
		t.Fatal(err)
	}
	if l := must[vnet.Lease](t)(c.Lease(within(t), id)); l.Verdict.Stale {
		t.Errorf("with the rate that was measured: %+v", l.Verdict)
	}
	must[vnet.Lease](t)(c.Release(within(t), id))
	if l := must[vnet.Lease](t)(c.Lease(within(t), id)); l.Verdict == nil || l.Verdict.Stale {
		t.Errorf("of a lease that has ended: %+v", l.Verdict)
	}
	if old := presented(vnet.Lease{State: vnet.Ended, Verdict: &vnet.Verdict{OK: true}}, time.Now()); !old.Verdict.Stale {
		t.Error("a verdict that a client wrote, before clients could no more, is believed")
	}
}

// One check of a lease at a time; who goes away ends theirs.
func TestChecksAreBounded(t *testing.T) {
	r := newRig(t)
	tenant := r.as(1)
	booked := pair("later", vnet.Mbit)
	booked.Start, booked.For = time.Now().Add(time.Hour), time.Hour
	must[api.Admission](t)(tenant.Admit(within(t), booked, false))
	id := r.running(tenant, pair("net", vnet.Mbit)).ID()
	check := func(ctx context.Context, id vnet.LeaseID, d time.Duration) error {
		_, err := tenant.Check(ctx, id, d, func(string) {})
		return err
	}
	began, ended := make(chan bool), make(chan error, 1)
	r.check = func(ctx context.Context, _ CheckJob) (vnet.Verdict, error) {
		began <- true
		<-ctx.Done()
		ended <- ctx.Err()
		return vnet.Verdict{}, ctx.Err()
	}
	ctx, leave := context.WithCancel(within(t))
	left := make(chan error, 1)
	go func() { left <- check(ctx, id, 0) }()
	<-began
	wantError(t, "a second check of a lease", check(within(t), id, 0), api.ErrConflict)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left was told %v", err)
	}
	<-ended
	wantError(t, "a check of what is booked", check(within(t), vnet.LeaseID{Tenant: "daemon", Network: "later"}, 0), api.ErrConflict)
	var field *vnet.FieldError
	if err := check(within(t), id, time.Millisecond); !errors.As(err, &field) {
		t.Errorf("a window of 1 ms: %v", err)
	}
	if l := must[vnet.Lease](t)(tenant.Lease(within(t), id)); l.Verdict != nil {
		t.Errorf("a check that was broken off left %+v", l.Verdict)
	}
}

func TestPlacesForChecks(t *testing.T) {
	var k checks
	name := func(tenant string, i int) vnet.LeaseID {
		return vnet.LeaseID{Tenant: vnet.TenantID(tenant), Network: vnet.VNetID(string(rune('a' + i)))}
	}
	var end func()
	for i := range mostChecksOfTenant {
		var err error
		if end, err = k.begin(name("alice", i), false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.begin(name("alice", 20), false); problemOf(err).Status != http.StatusTooManyRequests {
		t.Errorf("one tenant's fifth: %v", err)
	}
	for i := range mostChecks - mostChecksOfTenant {
		if _, err := k.begin(name("root", i), true); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.begin(name("root", 20), true); problemOf(err).Status != http.StatusTooManyRequests {
		t.Errorf("one more than all: %v", err)
	}
	end()
	if _, err := k.begin(name("root", 20), true); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}
