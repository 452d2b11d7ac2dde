package main

import (
	"testing"
	"time"

	"sublet/vnet"
)

// TestClonedRequests: another name and window; what began in the one has not in
// the other, which stays as it is.
func TestClonedRequests(t *testing.T) {
	start := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	was := vnet.Request{
		Network: "n", Tenant: "alice", Start: start, Before: start, For: time.Hour,
		Topology: vnet.Topology{Nodes: []vnet.VirtualNode{{Name: "a"}}},
		Stages:   []vnet.Stage{{Name: "s", OnCommand: true, After: time.Minute}},
	}
	r, err := cloned(was, "m", "", "")
	if err != nil || r.Network != "m" || r.Tenant != "" || !r.Start.IsZero() || !r.Before.IsZero() || r.For != time.Hour || r.Stages[0].After != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if was.Stages[0].After != time.Minute {
		t.Error("the request that was cloned has changed")
	}
	if r, err = cloned(was, "m", "2027-03-08T08:00:00Z", "2h"); err != nil || r.Start.Day() != 8 || r.For != 2*time.Hour {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range [][3]string{{"m", "monday", ""}, {"m", "", "-1h"}, {"m", "", "long"}, {"No Name", "", ""}} {
		if _, err := cloned(was, bad[0], bad[1], bad[2]); exitCode(err) != exitInput {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
