package lease

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/lease/rollout"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// obedient is an agent that does what it is told at once, if it may.
type obedient struct {
	name vnet.HostID
	has  plan.Host
}

// turn lets an agent look at its plan and report.
func (a *obedient) turn(t *testing.T, b *Book, now time.Time) {
	t.Helper()
	next, ok := b.Plan(a.name)
	if !ok {
		t.Fatalf("no plan of %s", a.name)
	}
	origin := a.has.Origin()
	told := report.Report{Host: a.name, Plan: &origin}
	switch {
	case !next.Follows(origin) && !next.Adopts(origin) && len(a.has.Items()) > 0:
		told.Held = &report.Held{Origin: origin, Why: "another store"}
	case next.Half:
		a.has = next.Shrunk(a.has)
	default:
		a.has = next.Kept()
	}
	origin = a.has.Origin()
	told.Tried, told.Revision = a.has.Revision, a.has.Revision
	if err := b.Report(now, told); err != nil {
		t.Fatal(err)
	}
}

// turns lets agents act until nothing changes.
func turns(t *testing.T, b *Book, now time.Time, agents ...*obedient) {
	t.Helper()
	for range 6 {
		for _, a := range agents {
			a.turn(t, b, now)
		}
		if err := b.Tick(now); err != nil {
			t.Fatal(err)
		}
	}
}

// begun is a book of two hosts and a link, in the term of one server.
func begun(t *testing.T, store, term string) *Book {
	b := pair(t)
	b.Begin(store, term)
	if err := b.Tick(noon); err != nil {
		t.Fatal(err)
	}
	return b
}

// stored is what a store has after everything was saved.
func stored(b *Book) State {
	c := b.Changes()
	return State{Substrate: b.Substrate(), Leases: b.Leases(), Plans: b.Plans(), Counters: c.Counters}
}

func restored(t *testing.T, now time.Time, s State, term string) *Book {
	t.Helper()
	b, err := Restore(now, s)
	if err != nil {
		t.Fatal(err)
	}
	b.Begin("not used", term)
	if err := b.Tick(now); err != nil {
		t.Fatal(err)
	}
	return b
}

func running(t *testing.T, b *Book, name string) {
	t.Helper()
	if s, message := state(t, b, name); s != vnet.Running || message != "" {
		t.Errorf("%s is %s %q", name, s, message)
	}
}

func waitsFor(t *testing.T, b *Book, name, words string) {
	t.Helper()
	if s, message := state(t, b, name); s == vnet.Running || !strings.Contains(message, words) {
		t.Errorf("%s is %s %q, want a word of %q", name, s, message, words)
	}
}

func networks(h plan.Host) (names []string) {
	for _, n := range plan.Of[plan.NameTable](h) {
		names = append(names, string(n.Lease.Network))
	}
	slices.Sort(names)
	return names
}

// TestAnEmptyStoreRemovesNothing: hosts of another store keep what they have;
// nothing is built anywhere before all of them are adopted and rid of it.
func TestAnEmptyStoreRemovesNothing(t *testing.T) {
	b := begun(t, "one", "t1")
	h1, h2 := &obedient{name: "h1"}, &obedient{name: "h2"}
	admit(t, b, "alice/net", "a@h1", "b@h2", "a-b=1")
	turns(t, b, noon, h1, h2)
	running(t, b, "alice/net")

	b = begun(t, "two", "t2")
	turns(t, b, noon, h1, h2)
	admit(t, b, "carol/net", "c@h1", "d@h2", "c-d=1")
	turns(t, b, noon, h1, h2)
	for _, h := range []*obedient{h1, h2} {
		if got := plan.Of[plan.NameTable](h.has)[0].Lease; got != parseID("alice/net") || len(plan.Of[plan.NameTable](h.has)) != 1 {
			t.Errorf("%s has %s", h.name, h.has)
		}
	}
	waitsFor(t, b, "carol/net", "adopt")
	waitsFor(t, b, "carol/net", "h1")
	later := noon.Add(b.FailAfter)
	turns(t, b, later, h1, h2)
	if s, message := state(t, b, "carol/net"); s != vnet.Failed || !strings.Contains(message, "sublet hosts adopt h1") {
		t.Errorf("carol's is %s %q", s, message)
	}

	if err := b.Adopt(later, "h1"); err != nil {
		t.Fatal(err)
	}
	turns(t, b, later, h1, h2)
	if len(h1.has.Items()) != 0 || len(networks(h2.has)) != 1 {
		t.Errorf("h1 has %sh2 has %s", h1.has, h2.has)
	}
	waitsFor(t, b, "carol/net", "sublet hosts adopt h2")
	if err := b.Adopt(later, "h2"); err != nil {
		t.Fatal(err)
	}
	turns(t, b, later, h1, h2)
	running(t, b, "carol/net")
	if h1.has.Half || h2.has.Half || plan.Of[plan.NameTable](h1.has)[0].Lease != parseID("carol/net") {
		t.Errorf("h1 has %sh2 has %s", h1.has, h2.has)
	}
	for name, want := range map[vnet.HostID]error{"h1": ErrConflict, "h9": ErrUnknown} {
		if err := b.Adopt(later, name); !errors.Is(err, want) {
			t.Errorf("adopt %s: %v", name, err)
		}
	}
}

// TestAnOlderCopyRemovesNothing: however many revisions it gives out.
func TestAnOlderCopyRemovesNothing(t *testing.T) {
	b := begun(t, "one", "t1")
	h1, h2 := &obedient{name: "h1"}, &obedient{name: "h2"}
	admit(t, b, "alice/net", "a@h1", "b@h2", "a-b=1")
	turns(t, b, noon, h1, h2)
	copied := stored(b)
	admit(t, b, "bob/newer", "a@h1", "b@h2", "a-b=1")
	turns(t, b, noon, h1, h2)
	running(t, b, "bob/newer")

	b = restored(t, noon, copied, "t2")
	away := noon.Add(2 * rollout.DefaultLiveness)
	for i := range 20 {
		l, err := b.Admit(away, parseRequest(away, []string{fmt.Sprintf("dave/n%d", i), "a@h1"}), 1000)
		if err == nil {
			err = b.Release(away, l.ID())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if p, _ := b.Plan("h1"); p.Revision <= h1.has.Revision {
		t.Fatalf("h1 has revision %d, its plan only %d", h1.has.Revision, p.Revision)
	}
	turns(t, b, noon, h1, h2)
	if got := fmt.Sprint(networks(h1.has), networks(h2.has)); got != "[net newer] [net newer]" {
		t.Errorf("hosts have %s", got)
	}
	b = restored(t, noon, stored(b), "t3") // the next server knows no better
	for _, h := range []vnet.HostID{"h1", "h2"} {
		turns(t, b, noon, h1, h2)
		if err := b.Adopt(noon, h); err != nil {
			t.Fatal(err)
		}
		b = restored(t, noon, stored(b), "after "+string(h)) // adopted is adopted
	}
	turns(t, b, noon, h1, h2)
	if got := fmt.Sprint(networks(h1.has), networks(h2.has)); got != "[net] [net]" {
		t.Errorf("adopted hosts have %s", got)
	}
	running(t, b, "alice/net")
}

// TestServersComeAndGo: hosts follow their store through any number of servers,
// also those whose plans have not changed for long.
func TestServersComeAndGo(t *testing.T) {
	b := begun(t, "one", "t0")
	h1, h2 := &obedient{name: "h1"}, &obedient{name: "h2"}
	admit(t, b, "alice/still", "a@h1")
	turns(t, b, noon, h1, h2)
	for i := range 3 * rollout.MaxTerms {
		b = restored(t, noon, stored(b), fmt.Sprint("t", i+1))
		turns(t, b, noon, h1, h2)
		admit(t, b, fmt.Sprintf("bob/n%d", i), "b@h2")
		if err := b.Release(noon, parseID(fmt.Sprintf("bob/n%d", i))); err != nil {
			t.Fatal(err)
		}
		turns(t, b, noon, h1, h2)
		running(t, b, "alice/still")
	}
	if n := len(b.rollout.Lineage().Terms); n != rollout.MaxTerms {
		t.Errorf("%d terms are kept", n)
	}
}

// TestAStoreOfAFormerVersionIsFollowed: its plans and copies have no terms.
func TestAStoreOfAFormerVersionIsFollowed(t *testing.T) {
	b := begun(t, "one", "t1")
	admit(t, b, "alice/net", "a@h1")
	former := stored(b)
	former.Counters.Store, former.Counters.Terms = "", nil
	for name, p := range former.Plans {
		p.Store, p.Term = "", ""
		former.Plans[name] = p
	}
	h1, h2 := &obedient{"h1", former.Plans["h1"]}, &obedient{"h2", former.Plans["h2"]}
	b, err := Restore(noon, former)
	if err != nil {
		t.Fatal(err)
	}
	b.Begin("named", "t2")
	if c := b.Changes(); !c.Named || c.Empty() || c.Counters.Store != "named" {
		t.Errorf("to save: %+v", c)
	}
	admit(t, b, "alice/more", "a@h1")
	turns(t, b, noon, h1, h2)
	running(t, b, "alice/net")
	running(t, b, "alice/more")
	b = restored(t, noon, stored(b), "t3")
	if c := b.Changes(); c.Named || c.Counters.Store != "named" {
		t.Errorf("to save by the next server: %+v", c)
	}
}
