package main

import (
	"strings"
	"testing"

	"sublet/vnet"
)

// All names that no lease has are told and nothing is chosen; scripts that clean
// up may pass over them, and over leases that have ended.
func TestDownTellsUnknownNames(t *testing.T) {
	named := func(name string, state vnet.State) vnet.Lease {
		return vnet.Lease{Request: vnet.Request{Tenant: "alice", Network: vnet.VNetID(name)}, State: state}
	}
	leases := []vnet.Lease{named("a", vnet.Running), named("over", vnet.Ended), named("b", vnet.Booked)}
	chosen, err := choose(leases, []string{"a", "none", "b", "over", "nil"}, whose{})
	if err == nil || chosen != nil || exitCode(err) != exitInput {
		t.Fatalf("chosen %v, %v", chosen, err)
	}
	for _, want := range []string{`"none"`, `"nil"`, "over has ended", "nothing is released"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %s", message(err), want)
		}
	}
	for name, want := range map[string]bool{"none": true, "over": true, "a": false, "a/b/c": false} {
		t.Run(name, func(t *testing.T) {
			if released(leases, name) != want {
				t.Errorf("%s is taken for released: %t", name, !want)
			}
		})
	}
}
