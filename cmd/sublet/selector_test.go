package main

import (
	"bytes"
	"strings"
	"testing"

	"sublet/vnet"
)

// What is chosen by labels is the caller's own, unless all tenants' are meant.
func TestDownByLabels(t *testing.T) {
	lease := func(tenant, network, course string) vnet.Lease {
		return vnet.Lease{State: vnet.Running, Request: vnet.Request{Tenant: vnet.TenantID(tenant), Network: vnet.VNetID(network), Labels: map[string]string{"course": course}}}
	}
	leases := func() []vnet.Lease {
		return []vnet.Lease{lease("alice", "a", "net1"), lease("alice", "b", "net2"), lease("bob", "c", "net1")}
	}
	w := whose{selector: "course=net1", tenant: "alice"}
	if err := w.check(nil); err != nil {
		t.Fatal(err)
	}
	few, err := selected(leases(), w.selector)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.live(few); len(got) != 1 || got[0].Request.Network != "a" {
		t.Errorf("chosen are %v", got)
	}
	var out bytes.Buffer
	(&app{out: &out}).rest(w, nil)
	if got := out.String(); !strings.Contains(got, "alice") || !strings.Contains(got, "labels") {
		t.Errorf("nothing chosen: %q", got)
	}
	for _, w := range []whose{{selector: "course=net1,"}, {selector: "a", everybody: true}} {
		if err := w.check(nil); exitCode(err) != exitInput {
			t.Errorf("%+v: %v", w, err)
		}
	}
	if err := (&whose{selector: "course"}).check([]string{"a"}); exitCode(err) != exitInput {
		t.Errorf("a name and labels: %v", err)
	}
}
