package lease

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// parse reads a request as conversations write it.
func parse(text string) vnet.Request {
	r := parseRequest(noon, strings.Fields(text))
	r.Fill()
	return r
}

// lines is a substrate as conversations write it.
func lines(text string) vnet.Substrate {
	var sub vnet.Substrate
	for _, line := range strings.Split(text, ";") {
		describe(&sub, strings.Fields(line))
	}
	return sub
}

// decided decides on a view of a book.
func decided(t *testing.T, b *Book, text string) Decision {
	t.Helper()
	d, err := b.View(noon, func(see func()) { see() }).Decide(parse(text), new(Solver), NewEffort(Budget, nil))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestLastCapacity: of two decisions for the same, the first that is committed
// has it, and the other must be decided anew; what does not concern it does not
// invalidate a decision.
func TestLastCapacity(t *testing.T) {
	b := New(lines("host h1;host h2;host h3;link h1 h2 1000;link h2 h3 1000"))
	first, second := decided(t, b, "alice/a x@h1 y@h2 x-y=800"), decided(t, b, "bob/b x@h1 y@h2 x-y=800")
	other := decided(t, b, "carol/c x@h2 y@h3 x-y=800")
	if _, err := b.Commit(noon, second, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(noon, first, 1); !errors.Is(err, ErrChanged) {
		t.Errorf("the second for the last capacity: %v", err)
	}
	if _, err := b.Commit(noon.Add(time.Second), other, 1); err != nil {
		t.Errorf("one that both left room for: %v", err)
	}
	if _, err := b.Commit(noon, second, 1); !errors.Is(err, ErrConflict) {
		t.Errorf("the same once more: %v", err)
	}
	if n := len(b.Leases()); n != 2 {
		t.Errorf("%d leases, want 2", n)
	}
}

// TestStaleDecision: a decision does not outlive its window, nor what it stands on.
func TestStaleDecision(t *testing.T) {
	b := New(lines("host h1;host h2;link h1 h2 1000"))
	short, long := decided(t, b, "alice/a for=1s x@h1 y@h2 x-y=1"), decided(t, b, "alice/b x@h1 y@h2 x-y=1")
	if _, err := b.Commit(noon.Add(time.Second), short, 1); !errors.Is(err, ErrChanged) {
		t.Errorf("a window that is over: %v", err)
	}
	if err := b.SetLinkDown(noon, "h1-h2", true); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(noon.Add(time.Second), long, 1); !errors.Is(err, ErrChanged) {
		t.Errorf("a path that is down: %v", err)
	}
}

// TestStaleMoves: a decision that moves others holds only while they are where
// they were.
func TestStaleMoves(t *testing.T) {
	begin := func() (*Book, Decision) {
		b := New(lines("host A;host C;host D;host F;host G;link C D 1000;link D G 1000;link C F 1000;link F G 1000;link A C 1000"))
		if _, err := b.Admit(noon, parse("vn1/net start=1h movable x@C y@G x-y=500"), 1); err != nil {
			t.Fatal(err)
		}
		d := decided(t, b, "vn3/net start=1h for=1h c@C d@D c-d=800")
		if len(d.moves) != 1 {
			t.Fatalf("%d moves, want 1", len(d.moves))
		}
		return b, d
	}
	b, d := begin()
	if _, err := b.Commit(noon, d, 1); err != nil {
		t.Errorf("nothing changed: %v", err)
	}
	b, d = begin()
	if _, err := b.Admit(noon, parse("eve/net start=1h x@C y@F x-y=600"), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(noon, d, 1); !errors.Is(err, ErrChanged) {
		t.Errorf("where it was to go is taken: %v", err)
	}
	b, d = begin()
	if err := b.Release(noon, vnet.LeaseID{Tenant: "vn1", Network: "net"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(noon, d, 1); !errors.Is(err, ErrChanged) {
		t.Errorf("who was to move is gone: %v", err)
	}
}

// TestUndecided: an answer that runs out of work says so, with reasons, and
// claims neither that there is no place nor that there is no offer.
func TestUndecided(t *testing.T) {
	r := fifty(rand.New(rand.NewPCG(1, 2)), "tight", 9*vnet.Gbit)
	r.Fill()
	b := New(hundred())
	ask := func(budget time.Duration) (*vnet.Rejection, *Effort) {
		effort := NewEffort(budget, nil)
		_, err := b.view(noon).Decide(r, b.solver, effort)
		var refused *vnet.Rejection
		if !errors.As(err, &refused) || len(refused.Reasons) == 0 {
			t.Fatalf("want a refusal with reasons, got %v", err)
		}
		return refused, effort
	}
	refused, effort := ask(time.Millisecond)
	if !refused.Undecided || !effort.Short() || refused.Never != "" {
		t.Errorf("undecided %t, short %t, never %q", refused.Undecided, effort.Short(), refused.Never)
	}
	refused, effort = ask(time.Hour)
	if refused.Undecided || effort.Short() || refused.Offer == nil && refused.Never == "" {
		t.Errorf("undecided %t, short %t, never %q", refused.Undecided, effort.Short(), refused.Never)
	}
}

// TestDecideAtOnce: tenants decide at the same time, each on views with a solver
// of its own, while leases come and go; nothing is ever booked twice.
func TestDecideAtOnce(t *testing.T) {
	b := New(lines("host A;host C;host D;host F;host G;link C D 1000;link D G 1000;link C F 1000;link F G 1000;link A C 1000"))
	var lock sync.Mutex
	locked := func(f func()) {
		lock.Lock()
		defer lock.Unlock()
		f()
	}
	asks := []string{"start=1h movable x@C y@G x-y=500", "for=1h c@C d@D c-d=800", "x y x-y=300", "start=1h for=2h x@F y@G x-y=400"}
	var tenants sync.WaitGroup
	for tenant := range 4 {
		tenants.Go(func() {
			solver := new(Solver)
			for i := range 40 {
				request := parse(fmt.Sprintf("t%d/n%d %s", tenant, i, asks[(tenant+i)%len(asks)]))
				var view *View
				locked(func() { view = b.View(noon, locked) })
				d, err := view.Decide(request, solver, NewEffort(QuickBudget, nil))
				if err != nil {
					continue
				}
				locked(func() {
					if _, err := b.Commit(noon, d, 1); err != nil && !errors.Is(err, ErrChanged) {
						t.Error(err)
					}
					if err := overbooked(b.solver.all.engine, b.calendar, allBookings(b)); err != nil {
						t.Error(err)
					}
					if i%3 == 0 && len(b.live) > 4 {
						if err := b.Release(noon, b.live[0].ID()); err != nil {
							t.Error(err)
						}
					}
				})
			}
		})
	}
	tenants.Wait()
	if len(b.entries) == 0 {
		t.Error("nobody was admitted")
	}
}

func allBookings(b *Book) (list []calendar.Booking) {
	for _, e := range b.live {
		list = append(list, e.bookings...)
	}
	return list
}
