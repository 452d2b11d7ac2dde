package lease

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// full is a request that has items of every kind on h1.
func full(name string) vnet.Request {
	r := parseRequest(noon, []string{name, "a@h1", "b@h2", "a-b=1", "a-r=1", "a-w=1", "a-x=1"})
	r.Topology.Routers = []vnet.VirtualNode{{Name: "r", Host: "h1"}}
	r.Topology.Switches = []vnet.VirtualSwitch{{Name: "w", Kind: vnet.SwitchKernel, Host: "h1"}, {Name: "x", Kind: vnet.SwitchEngine, Host: "h1"}}
	return r
}

// twoTenants is a book with a full lease of alice's and one of bob's, both running.
func twoTenants(t *testing.T) *Book {
	t.Helper()
	var sub vnet.Substrate
	for _, words := range []string{"host h1", "host h2", "switch s1", "switch s2", "link h1 s1 1000", "link s1 s2 1000", "link s2 h2 1000", "relays"} {
		describe(&sub, strings.Fields(words))
	}
	b := New(sub)
	for _, name := range []string{"alice/net", "bob/net"} {
		if _, err := b.Admit(noon, full(name), 1000); err != nil {
			t.Fatal(err)
		}
		reportAll(t, b)
	}
	return b
}

// unplanned is an item of alice's of a kind that Compile makes none of yet.
type unplanned struct{ kind plan.Kind }

func (u unplanned) Kind() plan.Kind          { return u.kind }
func (unplanned) Key() string                { return "alice.net.a" }
func (unplanned) LeaseID() vnet.LeaseID      { return parseID("alice/net") }
func (u unplanned) Meet(plan.Item) plan.Item { return u }
func (u unplanned) String() string           { return string(u.kind) }

// itemsOf are alice's items of a kind on h1.
func itemsOf(t *testing.T, b *Book, kind plan.Kind) (items []plan.Item) {
	t.Helper()
	p, _ := b.Plan("h1")
	for _, item := range p.Items() {
		if item.Kind() == kind && item.LeaseID() == parseID("alice/net") {
			items = append(items, item)
		}
	}
	if len(items) == 0 {
		t.Logf("no %s of alice's is in the plan: with one that is made up", kind)
		items = append(items, unplanned{kind})
	}
	return items
}

// leasedKinds are the kinds of items that are of a lease.
func leasedKinds() (kinds []plan.Kind) {
	for _, k := range plan.Kinds {
		if k != plan.KindUplink && plan.OwnerOf(k) == plan.ByServer {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// failing is a report of h1 in which one step failed.
func failing(t *testing.T, b *Book, at time.Time, s plan.Step) {
	t.Helper()
	say(t, b, at, report.NewItemError(s, errors.New("no room")))
}

// say reports that both hosts have gone through their plans, h1 with an error.
func say(t *testing.T, b *Book, at time.Time, e report.ItemError) {
	t.Helper()
	p1, _ := b.Plan("h1")
	p2, _ := b.Plan("h2")
	err := errors.Join(
		b.Report(at, report.Report{Host: "h1", Tried: p1.Revision, Errors: report.Errors{e}}),
		b.Report(at, report.Report{Host: "h2", Revision: p2.Revision}),
		b.Tick(at))
	if err != nil {
		t.Fatal(err)
	}
}

func state(t *testing.T, b *Book, name string) (vnet.State, string) {
	t.Helper()
	l, ok := b.Lease(parseID(name))
	if !ok {
		t.Fatalf("no lease %s", name)
	}
	return l.State, l.Message
}

// TestAnErrorIsOneLeases: what cannot be done for one lease fails that one.
func TestAnErrorIsOneLeases(t *testing.T) {
	for _, kind := range leasedKinds() {
		t.Run(string(kind), func(t *testing.T) {
			b := twoTenants(t)
			for _, item := range itemsOf(t, b, kind) {
				for _, at := range []time.Time{noon, noon.Add(b.FailAfter)} {
					failing(t, b, at, plan.Step{Op: plan.Set, Item: item})
				}
				if s, message := state(t, b, "alice/net"); s != vnet.Failed || !strings.Contains(message, "no room") {
					t.Errorf("%s: alice's lease is %s %q", item, s, message)
				}
				if s, message := state(t, b, "bob/net"); s != vnet.Running || message != "" {
					t.Errorf("%s of alice's: bob's lease is %s %q", item, s, message)
				}
				reportAll(t, b)
			}
		})
	}
}

// TestLocalErrorsConcernNoLease: what a host's own loop could not do fails
// nobody, and keeps nothing of a lease that has ended.
func TestLocalErrorsConcernNoLease(t *testing.T) {
	b := twoTenants(t)
	l, _ := b.Lease(parseID("alice/net"))
	if err := b.Release(noon, l.ID()); err != nil {
		t.Fatal(err)
	}
	for _, op := range []plan.Op{plan.Add, plan.Observe} {
		say(t, b, noon, report.ItemError{Kind: plan.KindPrefixSpread, Key: "10.2.0.0/16", Op: op, Text: "no room"})
	}
	if s, message := state(t, b, "bob/net"); s != vnet.Running || message != "" {
		t.Errorf("bob's lease is %s %q", s, message)
	}
	if s, message := state(t, b, "alice/net"); s != vnet.Ended || message != "" {
		t.Errorf("alice's lease is %s %q", s, message)
	}
}

// TestALeaseRemainsWhileAnItemDoes: its tunnels' identifiers are nobody else's.
func TestALeaseRemainsWhileAnItemDoes(t *testing.T) {
	for _, kind := range leasedKinds() {
		t.Run(string(kind), func(t *testing.T) {
			b := twoTenants(t)
			item := itemsOf(t, b, kind)[0]
			remains(t, b, func(at time.Time) { failing(t, b, at, plan.Step{Op: plan.Delete, Item: item}) })
			if s, message := state(t, b, "bob/net"); s != vnet.Running || message != "" {
				t.Errorf("bob's lease is %s %q", s, message)
			}
		})
	}
}

// TestALeaseRemainsWhileNobodyKnows: a host that has something of which it does
// not know whose it is, or cannot say what it has, may have it.
func TestALeaseRemainsWhileNobodyKnows(t *testing.T) {
	for name, e := range map[string]report.ItemError{
		"stray":  {Kind: plan.KindSpread, Key: "vni/01048576", Op: plan.Delete, Text: "busy"},
		"former": {Kind: plan.KindVxLink, Key: "alice.net#0000", Text: "delete: busy"},
		"unread": {Op: plan.Observe, Text: "read alice.net: busy"},
	} {
		t.Run(name, func(t *testing.T) {
			b := twoTenants(t)
			remains(t, b, func(at time.Time) { say(t, b, at, e) })
			s, message := state(t, b, "bob/net")
			if failed := s == vnet.Failed; failed != e.OfHost() || strings.Contains(message, "alice") {
				t.Errorf("bob's lease is %s %q", s, message)
			}
		})
	}
}

// remains releases alice's lease while h1 reports an error.
func remains(t *testing.T, b *Book, report func(time.Time)) {
	t.Helper()
	l, _ := b.Lease(parseID("alice/net"))
	if err := b.Release(noon, l.ID()); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{0, b.FailAfter, 2 * b.FailAfter} {
		report(noon.Add(after))
	}
	if s, message := state(t, b, "alice/net"); s != vnet.Ended || message != "being removed from h1" {
		t.Errorf("alice's lease is %s %q", s, message)
	}
	carol := admit(t, b, "carol/net", "a@h1", "b@h2", "a-b=1")
	if carol.VNIs["a-b"][0] == l.VNIs["a-b"][0] {
		t.Errorf("carol has tunnel %d, which h1 still has of alice's", carol.VNIs["a-b"][0])
	}
	if err := b.Release(noon, carol.ID()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gone(t, b, l) })
}

// gone checks that a report without errors gives everything back.
func gone(t *testing.T, b *Book, l vnet.Lease) {
	reportAll(t, b)
	if _, message := state(t, b, "alice/net"); message != "" {
		t.Errorf("alice's lease: %q", message)
	}
	dave := admit(t, b, "dave/net", "a@h1", "b@h2", "a-b=1")
	if got := fmt.Sprint(dave.VNIs["a-b"]); got != fmt.Sprint(l.VNIs["a-b"]) {
		t.Errorf("dave has tunnel %s, want %v of alice's", got, l.VNIs["a-b"])
	}
}
