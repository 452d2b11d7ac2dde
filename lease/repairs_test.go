package lease

import (
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// Repairs are counted for the lease they were made for, by hosts that carry it.
func TestRepairsAreNotedWithTheirLease(t *testing.T) {
	b := pair(t)
	id := vnet.LeaseID{Tenant: "alice", Network: "first"}
	for _, network := range []vnet.VNetID{"first", "second"} {
		if _, err := b.Admit(noon, local(network, vnet.Mbit), 1000); err != nil {
			t.Fatal(err)
		}
	}
	repair := func(at time.Duration, host vnet.HostID, count uint64, text string) {
		t.Helper()
		r := report.Report{Host: host, Repairs: []report.Repair{{Lease: id, Count: count, Text: text}, {Lease: vnet.LeaseID{Tenant: "nobody", Network: "none"}, Count: 1}}}
		if err := b.Report(noon.Add(at), r); err != nil {
			t.Fatal(err)
		}
	}
	repair(time.Second, "h1", 2, "node a was gone, is there again")
	repair(2*time.Second, "h1", 1, "link a-b was gone, is there again")
	repair(3*time.Second, "h2", 7, "nothing of it is there")
	l, _ := b.Lease(id)
	want := vnet.Repairs{Count: 3, Last: "h1: link a-b was gone, is there again", Time: noon.Add(2 * time.Second).UTC()}
	if l.Repairs == nil || *l.Repairs != want {
		t.Errorf("repairs are %+v, want %+v", l.Repairs, want)
	}
	if other, _ := b.Lease(vnet.LeaseID{Tenant: "alice", Network: "second"}); other.Repairs != nil {
		t.Errorf("another lease has %+v", other.Repairs)
	}
}
