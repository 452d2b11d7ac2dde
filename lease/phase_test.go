package lease

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sublet/lease/conversation"
	"sublet/vnet"
)

// transition is one that a lease made.
type transition struct{ from, to phase }

func (x transition) String() string { return x.from.String() + " -> " + x.to.String() }

func (x transition) allowed() bool { return slices.Contains(phases[x.from].next, x.to) }

// TestEveryTransitionIsTaken: conversations take all transitions of the table,
// and no other; phases.txt is there for this.
func TestEveryTransitionIsTaken(t *testing.T) {
	taken := make(map[transition]bool)
	conversation.Play(t, "testdata/*.txt", func() func([]string) string {
		c := talk{now: noon, onTransition: func(from, to phase) { taken[transition{from, to}] = true }}
		return c.say
	})
	for x := range taken {
		if !x.allowed() {
			t.Errorf("%s is not in the table", x)
		}
	}
	for from := range phases {
		for _, to := range phases[from].next {
			if x := (transition{phase(from), to}); !taken[x] {
				t.Errorf("%s is in the table and was not taken", x)
			}
		}
	}
}

// watch holds every transition of the book against the table.
func (w *world) watch(t *rapid.T) {
	w.book.onTransition = func(from, to phase) {
		if x := (transition{from, to}); !x.allowed() {
			t.Fatalf("%s is not in the table of phases", x)
		}
	}
}

// phasesHold holds every lease against the row of its phase.
func (w *world) phasesHold(t *rapid.T) {
	b := w.book
	onHosts := make(map[vnet.LeaseID]bool)
	for host := range b.Plans() {
		for _, item := range b.rollout.Target(host).Items() {
			onHosts[item.LeaseID()] = true
		}
	}
	for _, e := range slices.SortedFunc(maps.Values(b.entries), func(x, y *entry) int { return bySerial(x.Lease, y.Lease) }) {
		p := e.current()
		row := phases[p]
		in := func(list []*entry) bool { return slices.Contains(list, e) }
		switch {
		case e.listed != p:
			t.Fatalf("%s is listed as %s and is %s", e.ID(), e.listed, p)
		case !slices.Contains(row.states, e.State):
			t.Fatalf("%s is %s in phase %s", e.ID(), e.State, p)
		case in(b.live) != row.live || b.byTenant[e.Request.Tenant][e] != row.live || in(b.active) != row.active ||
			in(b.draining) != (p == phaseDraining) || in(b.history[e.Request.Tenant]) != (p == phaseHistory):
			t.Fatalf("%s is in phase %s and not in its lists", e.ID(), p)
		case p == phasePending && !in(b.openings):
			t.Fatalf("%s is pending, and nothing opens its window", e.ID())
		case len(e.bookings) > 0 && !row.booked:
			t.Fatalf("%s has bookings in phase %s", e.ID(), p)
		case onHosts[e.ID()] && !e.onHosts():
			t.Fatalf("hosts are to have %s in phase %s", e.ID(), p)
		}
	}
}
