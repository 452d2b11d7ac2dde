package lease

import (
	"testing"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// TestMachinesMayTakeMinutesToStart: a network is not called degraded because its
// machines start, as one is whose nodes do not reach each other.
func TestMachinesMayTakeMinutesToStart(t *testing.T) {
	for _, c := range []struct {
		setup vnet.Setup
		span  time.Duration
	}{
		{vnet.Setup{Kind: vnet.KindVM, Image: "debian.qcow2"}, StartOfMachines},
		{vnet.Setup{}, DefaultFailAfter},
	} {
		b := New(vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1", CPU: 4000, Memory: 4 << 30}}})
		node := vnet.VirtualNode{Name: "a", Memory: vnet.MinMachineMemory, Setup: c.setup}
		r := vnet.Request{Tenant: "alice", Network: "net", Topology: vnet.Topology{Nodes: []vnet.VirtualNode{node}}}
		r.Fill()
		l, err := b.Admit(noon, r, 1000)
		if err != nil {
			t.Fatal(err)
		}
		waits := func(at time.Time) vnet.State {
			t.Helper()
			p, _ := b.Plan("h1")
			e := report.ItemError{Kind: plan.KindReach, Key: "alice.net", Lease: l.ID(), Op: plan.Await, Text: "a does not answer yet"}
			if err := b.Report(at, report.Report{Host: "h1", Tried: p.Revision, Revision: p.Revision, Errors: report.Errors{e}}); err != nil {
				t.Fatal(err)
			}
			if err := b.Tick(at); err != nil {
				t.Fatal(err)
			}
			s, _ := state(t, b, "alice/net")
			return s
		}
		waits(noon)
		if next := b.Next(noon); next.Before(noon.Add(c.span)) {
			t.Errorf("kind %q: the book wants to be asked at %s already", c.setup.Kind, next.Sub(noon))
		}
		if s := waits(noon.Add(c.span - time.Second)); s != vnet.Deploying {
			t.Errorf("kind %q: a second before %s it is %s", c.setup.Kind, c.span, s)
		}
		if s := waits(noon.Add(c.span)); s != vnet.Degraded {
			t.Errorf("kind %q: after %s it is %s", c.setup.Kind, c.span, s)
		}
	}
}
