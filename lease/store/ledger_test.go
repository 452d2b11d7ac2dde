package store

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"sublet/lease"
	"sublet/vnet"
)

func record(tenant vnet.TenantID, serial uint64) vnet.Record {
	return vnet.Record{Serial: serial, Tenant: tenant, Network: "net", State: vnet.Booked, Admitted: time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)}
}

// The ledger is read in pages, of one tenant or of all; a record that is
// written again stands in its place.
func TestLedger(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		var alice, all []vnet.Record
		for serial := range uint64(300) { // more than a transaction holds
			r := record([]vnet.TenantID{"alice", "alice-2", "bob"}[serial%3], serial)
			all = append(all, r)
			if r.Tenant == "alice" {
				alice = append(alice, r)
			}
		}
		save(t, s, lease.Changes{Records: all, Leases: []vnet.Lease{sample(1, 0)}})
		last := alice[99]
		last.State, last.Why = vnet.Ended, "released"
		alice[99] = last
		save(t, s, lease.Changes{Records: []vnet.Record{last}, NoLeases: []vnet.LeaseID{sample(1, 0).ID()}})
		if got := pages(t, s, "alice", 7); !reflect.DeepEqual(got, alice) {
			t.Errorf("alice's records are %v", got)
		}
		seen := make(map[string]bool)
		for _, r := range pages(t, s, "", 64) {
			seen[fmt.Sprint(r.Tenant, r.Serial)] = true
		}
		if len(seen) != 300 {
			t.Errorf("%d of 300 records", len(seen))
		}
		if got := pages(t, s, "carol", 64); len(got) != 0 {
			t.Errorf("carol has %v", got)
		}
		if state, err := s.Load(t.Context()); err != nil || len(state.Leases) != 0 {
			t.Errorf("loaded %v, %v", state.Leases, err)
		}
	})
}

func pages(t *testing.T, s *Store, tenant vnet.TenantID, limit int) (all []vnet.Record) {
	t.Helper()
	for after := ""; ; {
		records, next, err := s.Ledger(t.Context(), tenant, after, limit)
		if err != nil || len(records) > limit {
			t.Fatalf("%d records in a page of %d: %v", len(records), limit, err)
		}
		all = append(all, records...)
		if after = next; after == "" {
			return all
		}
	}
}
