package lease

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// built leases a pair of nodes on one host, which has built it, and returns what the
// host says at a time.
func built(t *testing.T, b *Book, verify vnet.Verification) (l vnet.Lease, says func(at time.Time)) {
	t.Helper()
	r := vnet.Request{Tenant: "alice", Network: "net", Verify: verify, Topology: vnet.Topology{
		Nodes: []vnet.VirtualNode{{Name: "a"}, {Name: "b"}}, Links: []vnet.VirtualLink{{Ends: [2]string{"a", "b"}}},
	}}
	r.Fill()
	l, err := b.Admit(noon, r, 1000)
	if err != nil {
		t.Fatal(err)
	}
	says = func(at time.Time) {
		t.Helper()
		p, _ := b.Plan("h1")
		if err := errors.Join(b.Report(at, report.Report{Host: "h1", Tried: p.Revision, Revision: p.Revision}), b.Tick(at)); err != nil {
			t.Fatal(err)
		}
	}
	says(noon)
	return l, says
}

// A network that is verified waits for its verdict, has failed when that was bad for
// a while, and runs when it is good; then it is not verified again.
func TestHandover(t *testing.T) {
	for _, c := range []struct {
		asked  vnet.Verification
		all    bool // the operator wants it of all
		waited bool
	}{{"", false, false}, {"", true, true}, {vnet.VerifyNone, true, false}, {vnet.VerifyHandover, false, true}} {
		b := New(vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1", CPU: 4000, Memory: 4 << 30}}})
		b.VerifyHandover = c.all
		l, says := built(t, b, c.asked)
		if waits := len(b.Handovers()) == 1; waits != c.waited {
			t.Fatalf("%+v: waits: %t", c, waits)
		}
		if s, _ := state(t, b, "alice/net"); (s == vnet.Running) == c.waited {
			t.Fatalf("%+v: it is %s", c, s)
		}
		if !c.waited {
			continue
		}
		if err := b.HandOver(noon, l.ID(), l.Serial+1, ""); !errors.Is(err, ErrConflict) {
			t.Errorf("the verdict of another lease: %v", err)
		}
		for try := range HandoverTries {
			if s, _ := state(t, b, "alice/net"); s != vnet.Deploying {
				t.Errorf("after %d tries it is %s", try, s)
			}
			if err := b.HandOver(noon, l.ID(), l.Serial, "too slow"); err != nil {
				t.Fatal(err)
			}
		}
		if s, why := state(t, b, "alice/net"); s != vnet.Failed || !strings.Contains(why, "too slow") {
			t.Errorf("it is %s: %s", s, why)
		}
		says(noon.Add(time.Minute))
		if s, _ := state(t, b, "alice/net"); s != vnet.Failed || len(b.Handovers()) != 1 {
			t.Errorf("a report makes it %s", s)
		}
		if err := b.HandOver(noon.Add(time.Minute), l.ID(), l.Serial, ""); err != nil {
			t.Fatal(err)
		}
		if s, why := state(t, b, "alice/net"); s != vnet.Running || len(b.Handovers()) != 0 {
			t.Errorf("when it was measured it is %s: %s", s, why)
		}
		says(noon.Add(2 * time.Minute))
		if s, _ := state(t, b, "alice/net"); s != vnet.Running {
			t.Errorf("later it is %s", s)
		}
	}
}
