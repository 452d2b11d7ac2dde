package lease

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// pair is a book of two hosts and a link.
func pair(t *testing.T) *Book {
	t.Helper()
	var sub vnet.Substrate
	for _, words := range [][]string{{"host", "h1"}, {"host", "h2"}, {"link", "h1", "h2", "1000"}} {
		describe(&sub, words)
	}
	return New(sub)
}

func admit(t *testing.T, b *Book, words ...string) vnet.Lease {
	t.Helper()
	l, err := b.Admit(noon, parseRequest(noon, words), 1000)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func reportAll(t *testing.T, b *Book) {
	t.Helper()
	for host, p := range b.Plans() {
		if err := b.Report(noon, report.Report{Host: host, Revision: p.Revision}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAddressesKeepStatedOnesAndClashWithNone(t *testing.T) {
	nodes := make([]vnet.VirtualNode, 600)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("v%d", i)
	}
	nodes[300].Address = netip.MustParseAddr("10.0.0.1")
	nodes[301].Address = netip.MustParseAddr("10.0.1.1")
	given := addresses(vnet.Topology{Nodes: nodes}, nil)
	for name, want := range map[string]string{
		"v0": "10.0.0.2", "v1": "10.0.0.3", "v252": "10.0.0.254", "v253": "10.0.1.2",
		"v300": "10.0.0.1", "v301": "10.0.1.1",
	} {
		if got := given[name].String(); got != want {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
	}
	used := make(map[netip.Addr]bool)
	for name, a := range given {
		if last := a.As4()[3]; used[a] || last == 0 || last == 255 {
			t.Errorf("%s has %s", name, a)
		}
		used[a] = true
	}
}

func TestTunnelIdentifiersOfAFailureAreFree(t *testing.T) {
	sub := pair(t).Substrate().Index()
	var used vnis
	used.add(firstVNI)
	links := []vnet.VirtualLink{{Name: "l1", Ends: [2]string{"a", "b"}}, {Name: "l2", Ends: [2]string{"a", "b"}}}
	m := vnet.Mapping{Nodes: map[string]vnet.HostID{"a": "h1", "b": "h2"}, Links: map[string]vnet.Path{"l1": {"h1-h2"}, "l2": {"h1-h9"}}}
	if _, err := used.number(sub, nil, links, m); err == nil || used.used() != 1 {
		t.Fatalf("got %v, in use %v", err, used)
	}
	m.Links["l2"] = vnet.Path{"h1-h2"}
	got, err := used.number(sub, nil, links, m)
	if err != nil || got["l1"][0] != firstVNI+1 || got["l2"][0] != firstVNI+2 {
		t.Fatalf("got %v, %v", got, err)
	}
}

func TestHistoryIsBoundedPerTenant(t *testing.T) {
	b := pair(t)
	admit(t, b, "bob/old", "a@h1")
	if err := b.Release(noon, parseID("bob/old")); err != nil {
		t.Fatal(err)
	}
	for i := range History + 3 {
		l := admit(t, b, fmt.Sprintf("alice/n%d", i), "a@h1")
		if err := b.Release(noon, l.ID()); err != nil {
			t.Fatal(err)
		}
		reportAll(t, b)
	}
	past := b.Of("alice")
	if len(past) != History || past[0].Request.Network != "n3" || len(b.Of("bob")) != 1 {
		t.Fatalf("alice has %d past leases from %s, bob %d", len(past), past[0].Request.Network, len(b.Of("bob")))
	}
	if gone := b.Changes().NoLeases; len(gone) != 3 || gone[0] != parseID("alice/n0") {
		t.Fatalf("to delete: %v", gone)
	}
}

// A lease that is older than all of its tenant's history is known when it has ended:
// who ends it learns that it did.
func TestOldLeaseThatEndsIsKnown(t *testing.T) {
	b := pair(t)
	old := admit(t, b, "alice/old", "a@h1")
	for i := range History + 1 {
		l := admit(t, b, fmt.Sprintf("alice/n%d", i), "a@h1")
		if err := b.Release(noon, l.ID()); err != nil {
			t.Fatal(err)
		}
		reportAll(t, b)
	}
	if err := b.Release(noon, old.ID()); err != nil {
		t.Fatal(err)
	}
	reportAll(t, b)
	if l, ok := b.Lease(old.ID()); !ok || l.State != vnet.Ended {
		t.Errorf("the lease that ended is %v, %v", l.State, ok)
	}
	if past := b.Of("alice"); len(past) != History {
		t.Errorf("the history has %d leases", len(past))
	}
}

func TestVerdictIsKeptWithItsLease(t *testing.T) {
	b := pair(t)
	l := admit(t, b, "alice/net", "a@h1", "b@h2", "a-b=1")
	b.Saved()
	if err := b.SetVerdict(l.ID(), vnet.Verdict{Network: "net", Serial: l.Serial, OK: true, Time: noon}); err != nil {
		t.Fatal(err)
	}
	if c := b.Changes(); len(c.Leases) != 1 || c.Leases[0].Verdict == nil || !c.Leases[0].Verdict.OK {
		t.Fatalf("to save: %+v", c.Leases)
	}
	if err := b.SetVerdict(l.ID(), vnet.Verdict{Serial: l.Serial + 1}); !errors.Is(err, ErrConflict) {
		t.Fatalf("a verdict of another lease of that name: %v", err)
	}
	if err := b.SetVerdict(parseID("alice/none"), vnet.Verdict{}); !errors.Is(err, ErrUnknown) {
		t.Fatalf("got %v", err)
	}
}

func TestBadInputIsNamed(t *testing.T) {
	b := pair(t)
	for words, path := range map[string]string{
		"/net a":                           "tenant",
		"alice/net a start=-1s":            "window.start",
		"alice/net a a":                    "nodes[1].name",
		"alice/net for=1h a stage=s:2h -a": "stages[0].after",
	} {
		_, err := b.Admit(noon, parseRequest(noon, strings.Fields(words)), 1)
		var bad *vnet.FieldError
		if !errors.As(err, &bad) || bad.Path != path {
			t.Errorf("%s: got %v, want a complaint about %s", words, err, path)
		}
	}
	if c := b.Changes(); len(c.Leases) > 0 {
		t.Errorf("bad input changed %v", c.Leases)
	}
}

// TestAdmitIsDeterministic wants the same leases from the same history.
func TestAdmitIsDeterministic(t *testing.T) {
	talk := func() string {
		c := talk{now: noon}
		var all string
		for _, line := range []string{
			"host h1", "host h2", "host h3", "link h1 h2 1000", "link h2 h3 1000", "link h1 h3 1000", "open",
			"admit alice/a a b c a-b=300.. b-c=200 a-c=..100", "admit bob/b a b c a-b=300 b-c=200 a-c=700", "leases", "plans",
		} {
			all += c.say(strings.Fields(line))
		}
		return all
	}
	first := talk()
	for range 20 {
		if again := talk(); again != first {
			t.Fatalf("got\n%s, then\n%s", first, again)
		}
	}
}

func TestNextIsWhenSomethingHappens(t *testing.T) {
	b := pair(t)
	admit(t, b, "alice/net", "start=1h", "for=3h", "a@h1", "stage=s:1h", "b@h2")
	for _, want := range []time.Duration{time.Hour, 2 * time.Hour, 4 * time.Hour} {
		now := b.Next(noon)
		if got := now.Sub(noon); got != want {
			t.Fatalf("next after %s, want %s", got, want)
		}
		if err := b.Tick(now); err != nil {
			t.Fatal(err)
		}
		for host, p := range b.Plans() {
			if err := b.Report(now, report.Report{Host: host, Revision: p.Revision}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if next := b.Next(noon.Add(4 * time.Hour)); !next.IsZero() {
		t.Fatalf("next %s, want never", next)
	}
}
