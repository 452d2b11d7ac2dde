package server

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

func all(vnet.Happening) bool { return true }

// TestEventsOfOthers: a tenant who makes events until their day is full takes nobody
// else's away, and nobody reads another's.
func TestEventsOfOthers(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	dir := t.TempDir()
	j := openJournal(dir, log)
	now := time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)
	of := func(tenant vnet.TenantID, why string) {
		h := vnet.Happening{Time: now, Kind: "change", State: "x", Why: why}
		if tenant != "" {
			h.Lease = vnet.LeaseID{Tenant: tenant, Network: "n"}
		}
		j.event(h)
	}
	why := strings.Repeat("w", mostWhy)
	for range mostEventsOfDay/mostWhy + 1 {
		of("../mallory", why)
	}
	of("alice", "hers")
	of("", "the substrate's")
	for tenant, want := range map[vnet.TenantID]int{"alice": 1, "bob": 0, "../mallory": mostHappenings, "": mostHappenings} {
		list, err := j.happened(tenant, time.Time{}, all)
		if err != nil || len(list) != want {
			t.Errorf("%q has %d events, want %d: %v", tenant, len(list), want, err)
		}
		for i, h := range list {
			if tenant != "" && h.Lease.Tenant != tenant || i > 0 && h.Number <= list[i-1].Number {
				t.Fatalf("%q is shown %v behind %v", tenant, h, list[max(0, i-1)])
			}
		}
	}
	list, err := j.happened("", time.Time{}, all)
	if n := len(list); err != nil || n < 2 || list[n-2].Why != "hers" || list[n-1].Why != "the substrate's" {
		t.Fatalf("the operator is not shown what happened last: %v", err)
	}
	if again := openJournal(dir, log); again.number != j.number {
		t.Errorf("goes on after %d, want %d", again.number, j.number)
	}
	if out, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*mallory*")); len(out) > 0 || said.Len() > 0 {
		t.Errorf("written outside: %v, said: %s", out, said.String())
	}
	j.clean(now.AddDate(0, 0, keepDays+1), func(string) bool { return false })
	if left, err := os.ReadDir(filepath.Join(dir, eventsDir)); err != nil || len(left) > 0 {
		t.Errorf("after %d days there are %v: %v", keepDays, left, err)
	}
}
