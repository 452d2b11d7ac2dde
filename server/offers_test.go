package server

import (
	"os"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

// TestOffersChangeNothing: what would be admitted is said and not booked; what
// would be refused comes with offers; other tenants' names do not show.
func TestOffersChangeNothing(t *testing.T) {
	r := newRig(t)
	ctx, c := within(t), r.as(os.Geteuid())
	for range 2 {
		p := must[api.Proposal](t)(c.Offers(ctx, pair("net", 600*vnet.Mbit)))
		if !p.Admitted || p.Quote == nil || p.Refusal != nil || p.Quote.Mapping.Nodes["a"] != "h1" {
			t.Fatalf("%+v", p)
		}
	}
	must[api.Admission](t)(c.Admit(ctx, pair("net", 600*vnet.Mbit), false))
	if p := must[api.Proposal](t)(c.Offers(ctx, pair("net", 100*vnet.Mbit))); !p.Admitted || !p.Taken {
		t.Errorf("a network that exists, asked for again: %+v", p)
	}
	p := must[api.Proposal](t)(r.as(4242).Offers(ctx, pair("other", 600*vnet.Mbit)))
	if p.Admitted || p.Refusal == nil || len(p.Refusal.Offers) == 0 || p.Refusal.Offers[0].Account == nil {
		t.Fatalf("%+v", p)
	}
	load := p.Calendar.Loads[0]
	if peak := load.Peak(p.Calendar.Window); peak.Booked != 600*vnet.Mbit || peak.Leases != 0 {
		t.Errorf("load %+v", load)
	}
	if _, err := c.Offers(ctx, vnet.Request{Network: "bad name"}); err == nil {
		t.Error("a bad request was answered")
	}
}

// TestCalendarShowsHowMuch over a window, and refuses windows that are none.
func TestCalendarShowsHowMuch(t *testing.T) {
	r := newRig(t)
	ctx, c := within(t), r.as(os.Geteuid())
	must[api.Admission](t)(c.Admit(ctx, pair("net", 600*vnet.Mbit), false))
	from := time.Now().UTC().Truncate(time.Second).Add(time.Hour)
	w := vnet.Window{Start: from, End: from.Add(time.Hour)}
	answer := must[api.Calendar](t)(r.as(4242).Calendar(ctx, w))
	if answer.Window != w || len(answer.Loads) != 2 || len(answer.Loads[1].Steps) != 1 {
		t.Fatalf("%+v", answer)
	}
	if len(answer.Hosts) != 2 || len(answer.Hosts[0].Steps) != 1 {
		t.Errorf("hosts %+v", answer.Hosts)
	}
	if s := answer.Loads[1].Steps[0]; s.Booked != 600*vnet.Mbit || s.Leases != 0 || !s.At.Equal(from) {
		t.Errorf("step %+v", s)
	}
	if _, err := c.Calendar(ctx, vnet.Window{Start: from, End: from}); err == nil {
		t.Error("an empty window was answered")
	}
}

// TestMovesNameNobodyElse: what is moved to make room is told with names to
// its owner and the operator only.
func TestMovesNameNobodyElse(t *testing.T) {
	foreign := vnet.Disturbance{Lease: vnet.LeaseID{Tenant: "alice", Network: "net"}, Links: []string{"a-b"}, Moved: 1, Running: true}
	own := foreign
	own.Lease.Tenant = "bob"
	tenant, operator := &call{Caller: trust.Caller{Tenant: "bob"}}, &call{Caller: trust.Caller{Operator: true}}
	got := tenant.veil([]vnet.Disturbance{foreign, own})
	if got[0].Lease != (vnet.LeaseID{}) || got[0].Links != nil || got[0].Moved != 1 || got[1].Lease.Tenant != "bob" || len(got[1].Links) != 1 {
		t.Errorf("bob is told %+v", got)
	}
	if got := operator.veil([]vnet.Disturbance{foreign}); got[0].Lease.Tenant != "alice" {
		t.Errorf("the operator is told %+v", got)
	}
}
