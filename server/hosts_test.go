package server

import (
	"net/netip"
	"slices"
	"testing"

	"sublet/lease/api"
	"sublet/report"
	"sublet/vnet"
)

// Before any lease the operator sees what a host's ports need and its agent does
// not find; tenants do not.
func TestHostsSayWhatPortsLack(t *testing.T) {
	sub := twoHosts()
	sub.Links[0].Ports = [2]vnet.Port{
		{Interface: "ens4", Address: netip.MustParseAddr("192.0.2.1")}, {Interface: "eth0", Address: netip.MustParseAddr("192.0.2.2")},
	}
	r := newRigOn(t, sub)
	operator, ctx := r.as(0), within(t)
	have := []report.Interface{{Name: "eth0", MTU: 1500, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}}}
	for _, host := range []vnet.HostID{"h1", "h2"} {
		if err := operator.Report(ctx, report.Report{Host: host, Interfaces: have}); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range must[[]api.Host](t)(operator.Hosts(ctx)) {
		var want []string
		if h.Name == "h1" {
			want = []string{"ens4: no such interface"}
		}
		if !slices.Equal(h.Lacks, want) {
			t.Errorf("%s lacks %q, want %q", h.Name, h.Lacks, want)
		}
	}
	for _, h := range must[[]api.Host](t)(r.as(1000).Hosts(ctx)) {
		if h.Lacks != nil {
			t.Errorf("a tenant sees that %s lacks %q", h.Name, h.Lacks)
		}
	}
}
