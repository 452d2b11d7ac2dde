package server

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"sublet/lease/api"
	"sublet/vnet"
)

// A network that is to be verified runs once it was measured and nothing is broken;
// what is broken is said, and measured again.
func TestHandover(t *testing.T) {
	r := newRig(t)
	var times atomic.Int32
	said := make(chan vnet.Lease, 1)
	c := r.as(0)
	asked := pair("net", vnet.Mbit)
	asked.Verify = vnet.VerifyHandover
	id := vnet.LeaseID{Tenant: "root", Network: "net"}
	r.check = func(ctx context.Context, job CheckJob) (vnet.Verdict, error) {
		if !job.Short {
			t.Error("windows are not short")
		}
		v, err := allKept(ctx, job)
		switch times.Add(1) {
		case 1:
			v.OK, v.Outcome = false, vnet.Broken
			v.Links[0].OK, v.Links[0].Why = false, "TCP carries half"
		case 2:
			said <- must[vnet.Lease](t)(c.Lease(ctx, id))
		}
		return v, err
	}
	l := r.running(c, asked)
	if n := times.Load(); n != 2 || l.Verdict == nil || !l.Verdict.OK {
		t.Errorf("measured %d times, verdict %+v", n, l.Verdict)
	}
	if before := <-said; before.State != vnet.Deploying || !strings.Contains(before.Message, "ab from a: TCP carries half") {
		t.Errorf("while it is measured again it is %s: %s", before.State, before.Message)
	}
	other := pair("other", vnet.Mbit)
	must[api.Admission](t)(c.Admit(within(t), other, false))
	must[vnet.Lease](t)(c.WaitReady(within(t), vnet.LeaseID{Tenant: "root", Network: "other"}))
	if n := times.Load(); n != 2 {
		t.Errorf("one that does not ask for it is measured: %d", n)
	}
}
