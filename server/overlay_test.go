package server

import (
	"encoding/json"
	"net"
	"net/http"
	"reflect"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// A tenant sees the overlay entries of their leases only.
func TestOverlayIsFiltered(t *testing.T) {
	r := newRig(t)
	l := must[net.Listener](t)(net.Listen("unix", r.agentSocket("h1")))
	entries := []report.TunnelState{
		{Host: "h1", Overlay: plan.Overlay{Lease: vnet.LeaseID{Tenant: "daemon", Network: "a"}, VNI: 7}, State: report.TunnelValid, Hits: 3},
		{Host: "h1", Overlay: plan.Overlay{Lease: vnet.LeaseID{Tenant: "bin", Network: "a"}, VNI: 8}, State: report.TunnelValid},
		{Host: "h1", State: report.TunnelNone, Drops: map[string]uint64{"unknown": 2}},
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { _ = json.NewEncoder(w).Encode(entries) })}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	ctx := within(t)
	r.agents()
	for _, err := r.as(0).Overlay(ctx, "h1"); err != nil && ctx.Err() == nil; _, err = r.as(0).Overlay(ctx, "h1") {
		time.Sleep(10 * time.Millisecond) // it has not reported yet
	}
	if got := must[[]report.TunnelState](t)(r.as(0).Overlay(ctx, "h1")); !reflect.DeepEqual(got, entries) {
		t.Errorf("the operator sees %+v", got)
	}
	if got := must[[]report.TunnelState](t)(r.as(1).Overlay(ctx, "h1")); !reflect.DeepEqual(got, entries[:1]) {
		t.Errorf("a tenant sees %+v", got)
	}
	wantError(t, "no host", func() error { _, err := r.as(0).Overlay(ctx, "h9"); return err }(), api.ErrNotFound)
}
