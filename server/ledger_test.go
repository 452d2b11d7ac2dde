package server

import (
	"fmt"
	"testing"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/vnet"
)

// All leases that ever were stay in the ledger, more than the server remembers
// besides, under the same name too, and over a restart.
func TestLedgerKeepsEverything(t *testing.T) {
	r := newRig(t)
	r.stop()
	r.limits = DefaultLimits
	r.limits.Admissions = 1000
	r.start()
	ctx, c := within(t), r.as(1)
	const leases = lease.History + 8
	for i := range leases {
		req := pair(fmt.Sprint("n", i%4), vnet.Mbit)
		req.Start, req.For = time.Now().Add(time.Hour), time.Hour
		id := must[api.Admission](t)(c.Admit(ctx, req, false)).Lease.ID()
		must[vnet.Lease](t)(c.Release(ctx, id))
	}
	must[api.Admission](t)(r.as(2).Admit(ctx, pair("net", vnet.Mbit), false))
	r.stop()
	r.start()
	page := must[api.LedgerPage](t)(r.as(1).Ledger(ctx, api.LedgerQuery{}))
	if len(page.Records) != leases || page.Next != "" {
		t.Fatalf("%d records of %d", len(page.Records), leases)
	}
	for i, record := range page.Records {
		if record.Tenant != "daemon" || record.Network != vnet.VNetID(fmt.Sprint("n", i%4)) || record.State != vnet.Ended || record.Why != "released" ||
			record.Owner != 1 || record.Nodes != 2 || record.Links != 1 || record.Bandwidth != 2*vnet.Mbit || record.Admitted.IsZero() || record.Ended.IsZero() {
			t.Fatalf("record %d is %+v", i, record)
		}
	}
	if n := len(must[api.LedgerPage](t)(r.as(0).Ledger(ctx, api.LedgerQuery{Limit: leases + 1})).Records); n != leases+1 {
		t.Errorf("the operator sees %d records", n)
	}
}

func TestLedgerIsPaged(t *testing.T) {
	r := newRig(t)
	ctx := within(t)
	for i := range 5 {
		must[api.Admission](t)(r.as(1).Admit(ctx, pair(fmt.Sprint("n", i), vnet.Mbit), false))
	}
	must[api.Admission](t)(r.as(2).Admit(ctx, pair("net", vnet.Mbit), false))
	total := 0
	for q := (api.LedgerQuery{Limit: 2}); ; {
		page := must[api.LedgerPage](t)(r.as(1).Ledger(ctx, q))
		total += len(page.Records)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if total != 5 {
		t.Errorf("%d of 5 records", total)
	}
	for _, q := range []api.LedgerQuery{{Tenant: "daemon"}, {After: "daemon/00000000000000000001"}} {
		page, err := r.as(2).Ledger(ctx, q)
		for _, record := range page.Records {
			if record.Tenant != "bin" {
				t.Errorf("%+v shows %+v", q, record)
			}
		}
		if q.Tenant != "" {
			wantError(t, "another's ledger", err, api.ErrForbidden)
		}
	}
	if n := len(must[api.LedgerPage](t)(r.as(0).Ledger(ctx, api.LedgerQuery{Tenant: "bin"})).Records); n != 1 {
		t.Errorf("the operator sees %d of bin's records", n)
	}
	now := time.Now()
	for q, want := range map[api.LedgerQuery]int{
		{From: now.Add(time.Hour)}: 1, {Until: now.Add(-time.Hour)}: 0, {From: now.Add(-time.Hour), Until: now.Add(time.Hour)}: 1,
	} {
		if n := len(must[api.LedgerPage](t)(r.as(2).Ledger(ctx, q)).Records); n != want {
			t.Errorf("%+v finds %d records, not %d", q, n, want)
		}
	}
	for _, q := range []api.LedgerQuery{{After: "x"}, {Limit: 1001}, {After: "../x/00000000000000000001"}} {
		if _, err := r.as(0).Ledger(ctx, q); err == nil {
			t.Errorf("%+v is answered", q)
		}
	}
}
