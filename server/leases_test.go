package server

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"

	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestLifeOfALease(t *testing.T) {
	r := newRig(t)
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	a := must[api.Admission](t)(c.Admit(ctx, pair("net", 100*vnet.Mbit), false))
	id := a.Lease.ID()
	if a.Lease.Owner != uint32(os.Geteuid()) || len(a.Changes) != 0 {
		t.Errorf("admitted %+v", a)
	}
	l := must[vnet.Lease](t)(c.WaitReady(ctx, id))
	if l.State != vnet.Running || l.Rates["ab"][vnet.Forward] != 100*vnet.Mbit {
		t.Errorf("state %s (%s), rates %v", l.State, l.Message, l.Rates)
	}
	checkViews(t, must[[]api.Host](t)(c.Hosts(ctx)), must[[]api.Link](t)(c.Links(ctx)))

	verdict := must[vnet.Verdict](t)(c.Check(ctx, id, 0, func(string) {}))
	if l = must[vnet.Lease](t)(c.Lease(ctx, id)); !reflect.DeepEqual(l.Verdict, &verdict) {
		t.Errorf("verdict %+v, want %+v", l.Verdict, verdict)
	}
	must[vnet.Lease](t)(c.Release(ctx, id))
	if err := c.WaitGone(ctx, id); err != nil {
		t.Fatal(err)
	}
	if links := must[[]api.Link](t)(c.Links(ctx)); links[0].Leases != 0 || links[0].Booked != 0 {
		t.Errorf("after the end: %+v", links[0])
	}
	for _, want := range []string{`"what":"POST"`, `"what":"DELETE"`, `"about":"root/net"`} {
		if os.Geteuid() == 0 && !strings.Contains(r.log.String(), want) {
			t.Errorf("the audit log lacks %s:\n%s", want, r.log)
		}
	}
}

func checkViews(t *testing.T, hosts []api.Host, links []api.Link) {
	t.Helper()
	h := hosts[0]
	if h.Agent != api.AgentUp || h.Nodes != 1 || h.CPU-h.CPUFree != 100 || h.Memory-h.MemFree != 64*vnet.MiB || h.Applied != h.Revision || h.Revision == 0 {
		t.Errorf("host %+v", h)
	}
	want := []api.Link{
		{Name: "wire", From: "h1", To: "h2", Capacity: vnet.Gbit, Leasable: vnet.Gbit, Booked: 100 * vnet.Mbit, Allocated: 100 * vnet.Mbit, Links: 1, Leases: 1},
		{Name: "wire", From: "h2", To: "h1", Capacity: vnet.Gbit, Leasable: vnet.Gbit, Booked: 100 * vnet.Mbit, Allocated: 100 * vnet.Mbit, Links: 1, Leases: 1},
	}
	if !reflect.DeepEqual(links, want) {
		t.Errorf("links %+v\nwant  %+v", links, want)
	}
}

// Ways out, exits and places to join are among the links, with what is booked there.
func TestWaysOutAreAmongLinks(t *testing.T) {
	sub := twoHosts()
	sub.NAT = []vnet.NAT{{Name: "campus", Host: "h2", Interface: "out0", Capacity: 100 * vnet.Mbit, Via: addr("192.0.2.65"), Pool: vnet.AddrRange{First: addr("192.0.2.70"), Last: addr("192.0.2.71")}}}
	sub.Exits = []vnet.Exit{{Name: "lan", Host: "h1", Interface: "lan0", VLANs: vnet.VLANRange{First: 1, Last: 2}, Capacity: 50 * vnet.Mbit}}
	r := newRigOn(t, sub)
	ctx, c := within(t), r.as(os.Geteuid())
	req := pair("net", 10*vnet.Mbit)
	req.Routers = []vnet.VirtualNode{{Name: "out", NAT: "campus"}}
	req.Links = append(req.Links, vnet.VirtualLink{Name: "up", Ends: [2]string{"a", "out"}, Bandwidth: [2]vnet.Bandwidth{vnet.Static(4 * vnet.Mbit), vnet.Static(6 * vnet.Mbit)}})
	must[api.Admission](t)(c.Admit(ctx, req, false))
	found := make(map[string]api.Link)
	for _, l := range must[[]api.Link](t)(c.Links(ctx)) {
		found[l.Name+" "+l.From] = l
	}
	for name, want := range map[string]api.Link{
		"nat:campus h2":      {Name: "nat:campus", From: "h2", To: "outside", Capacity: 100 * vnet.Mbit, Leasable: 100 * vnet.Mbit, Booked: 4 * vnet.Mbit, Allocated: 4 * vnet.Mbit, Links: 1, Leases: 1},
		"nat:campus outside": {Name: "nat:campus", From: "outside", To: "h2", Capacity: 100 * vnet.Mbit, Leasable: 100 * vnet.Mbit, Booked: 6 * vnet.Mbit, Allocated: 6 * vnet.Mbit, Links: 1, Leases: 1},
		"exit:lan h1":        {Name: "exit:lan", From: "h1", To: "outside", Capacity: 50 * vnet.Mbit, Leasable: 50 * vnet.Mbit},
	} {
		if !reflect.DeepEqual(found[name], want) {
			t.Errorf("%s is %+v, not %+v", name, found[name], want)
		}
	}
}

func TestRefusalAndCounterOffer(t *testing.T) {
	r := newRig(t)
	ctx, c := within(t), r.as(os.Geteuid())
	must[api.Admission](t)(c.Admit(ctx, pair("first", 800*vnet.Mbit), false))
	_, err := c.Admit(ctx, pair("second", 400*vnet.Mbit), false)
	var rejection *vnet.Rejection
	if !errors.As(err, &rejection) || len(rejection.Reasons) == 0 || rejection.Offer == nil || len(rejection.Changes) == 0 {
		t.Fatalf("over-booking gave %#v", err)
	}
	if _, err := c.Lease(ctx, vnet.LeaseID{Tenant: "root", Network: "second"}); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("a refused lease is there: %v", err)
	}
	must[api.Admission](t)(c.Admit(ctx, *rejection.Offer, false))
	a := must[api.Admission](t)(c.Admit(ctx, pair("third", 400*vnet.Mbit), true))
	if len(a.Changes) == 0 {
		t.Errorf("the counter-offer was taken without a word: %+v", a)
	}
	_, err = c.Admit(ctx, pair("first", vnet.Mbit), false)
	wantError(t, "a name twice", err, api.ErrConflict)
}

func TestTenantsAreStrangers(t *testing.T) {
	r := newRig(t)
	ctx, operator, daemon, bin := within(t), r.as(0), r.as(1), r.as(2)
	mine := must[api.Admission](t)(daemon.Admit(ctx, pair("net", vnet.Mbit), false)).Lease
	if mine.Owner != 1 || mine.Request.Tenant != "daemon" {
		t.Errorf("owner %d, tenant %s", mine.Owner, mine.Request.Tenant)
	}
	id, missing := mine.ID(), vnet.LeaseID{Tenant: "daemon", Network: "other"}
	for name, do := range map[string]func(id vnet.LeaseID) error{
		"get":     func(id vnet.LeaseID) error { _, err := bin.Lease(ctx, id); return err },
		"release": func(id vnet.LeaseID) error { _, err := bin.Release(ctx, id); return err },
		"check":   func(id vnet.LeaseID) error { _, err := bin.Check(ctx, id, 0, func(string) {}); return err },
		"exec":    func(id vnet.LeaseID) error { return send(ctx, bin, "GET", api.NodePath(id, "a", "exec"), nil) },
		"probe":   func(id vnet.LeaseID) error { return send(ctx, bin, "POST", api.NodePath(id, "a", "probe"), nil) },
		"capture": func(id vnet.LeaseID) error { return send(ctx, bin, "GET", api.CapturePath(id, "ab"), nil) },
	} {
		foreign, absent := do(id), do(missing)
		wantError(t, name+" of a foreign lease", foreign, api.ErrNotFound)
		if strings.ReplaceAll(foreign.Error(), "net", "other") != absent.Error() {
			t.Errorf("%s tells foreign (%v) from missing (%v)", name, foreign, absent)
		}
	}
	if list := must[[]vnet.Lease](t)(bin.Leases(ctx)); len(list) != 0 {
		t.Errorf("bin sees %d leases", len(list))
	}
	if list := must[[]vnet.Lease](t)(operator.Leases(ctx)); len(list) != 1 {
		t.Errorf("the operator sees %d leases", len(list))
	}
	must[api.Admission](t)(bin.Admit(ctx, pair("net", vnet.Mbit), false)) // the same name, another tenant
	forged := pair("forged", vnet.Mbit)
	forged.Tenant = "daemon"
	_, err := bin.Admit(ctx, forged, false)
	wantError(t, "leasing for another", err, api.ErrForbidden)
	must[vnet.Lease](t)(daemon.Release(ctx, id))
	if sub := must[vnet.Substrate](t)(daemon.Substrate(ctx)); sub.Links[0].Ports[0].Address.IsValid() {
		t.Error("a tenant sees the underlay's addresses")
	}
}

func TestOperatorsVerbs(t *testing.T) {
	r := newRig(t)
	ctx, operator, tenant := within(t), r.as(0), r.as(1)
	for tenantName, owner := range map[vnet.TenantID]uint32{"bin": 2, "nobody-of-this-name": trust.Nobody} {
		req := pair("net", vnet.Mbit)
		req.Tenant = tenantName
		if a := must[api.Admission](t)(operator.Admit(ctx, req, false)); a.Lease.Owner != owner {
			t.Errorf("owner for %s is %d, want %d", tenantName, a.Lease.Owner, owner)
		}
	}
	_, err := tenant.PlanNow(ctx, "h1")
	wantError(t, "a tenant reads a plan", err, api.ErrForbidden)
	wantError(t, "a tenant reports", tenant.Report(ctx, reportOf("h1")), api.ErrForbidden)
	wantError(t, "a tenant's dry run", tenant.Diff(ctx, "h1", nil), api.ErrForbidden)
	_, err = r.as(trust.Nobody).Leases(ctx)
	wantError(t, "nobody", err, api.ErrForbidden)
	if a := must[api.Admission](t)(r.as(4242).Admit(ctx, pair("net", vnet.Mbit), false)); a.Lease.Request.Tenant != "uid4242" {
		t.Errorf("a user without a name is tenant %s", a.Lease.Request.Tenant)
	}
}

func TestRestartKeepsLeases(t *testing.T) {
	r := newRig(t)
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	for i := range 3 {
		must[api.Admission](t)(c.Admit(ctx, pair(fmt.Sprintf("n%d", i), 10*vnet.Mbit), false))
	}
	before := must[vnet.Lease](t)(c.WaitReady(ctx, vnet.LeaseID{Tenant: "root", Network: "n2"}))
	r.stop()
	_, err := c.Leases(ctx)
	wantError(t, "no server", err, api.ErrUnreachable)
	if err != nil && !strings.Contains(err.Error(), "start one with `sublet serve` or `sublet lab up`") {
		t.Errorf("the advice is missing: %v", err)
	}
	r.start()
	after := must[vnet.Lease](t)(c.WaitReady(ctx, before.ID()))
	if after.Account.Used.Total < before.Account.Used.Total {
		t.Errorf("the restart lost what was metered: %+v, then %+v", before.Account, after.Account)
	}
	before.Account, after.Account = nil, nil // it goes on being metered
	if !reflect.DeepEqual(before, after) {
		t.Errorf("before the restart\n%+v\nafter\n%+v", before, after)
	}
	if list := must[[]vnet.Lease](t)(c.Leases(ctx)); len(list) != 3 {
		t.Errorf("%d leases after the restart", len(list))
	}
}

func TestSubstrateThatContradictsLeases(t *testing.T) {
	r := newRig(t)
	must[api.Admission](t)(r.as(os.Geteuid()).Admit(within(t), pair("net", 800*vnet.Mbit), false))
	server, err := New(t.Context(), Config{Store: r.store, Substrate: &vnet.Substrate{Hosts: twoHosts().Hosts[:1]}})
	if err == nil || server != nil || !strings.Contains(err.Error(), "root/net") {
		t.Errorf("a substrate without h2 was taken on: %v", err)
	}
}
