package lease

import (
	"maps"

	"sublet/embed/calendar"
	"sublet/lease/rollout"
	"sublet/plan"
	"sublet/vnet"
)

// Ahead is what a book makes of leases, made while nobody needs the book: a server that
// waits to lead has a calendar of what is stored. It is not safe for concurrent use.
type Ahead struct {
	resources
	of         map[vnet.LeaseID]*entry
	allocation allocation
	off        map[*entry]bool // get something else than the store says
	plans      map[vnet.HostID]rollout.Prepared
}

// NewAhead is without leases. The substrate is replaced by others, never changed.
func NewAhead(sub vnet.Substrate) *Ahead {
	return &Ahead{
		resources: resources{sub: sub, working: sub, calendar: calendar.New(), solver: new(Solver)},
		of:        make(map[vnet.LeaseID]*entry),
		off:       make(map[*entry]bool),
		plans:     make(map[vnet.HostID]rollout.Prepared),
	}
}

// Take takes in a lease in place of the one of its name. One that a book has to look at
// more closely is left to it: it moves, has no place, or contradicts the substrate.
func (a *Ahead) Take(l vnet.Lease) {
	a.Drop(l.ID())
	e := &entry{Lease: l}
	if l.State == vnet.Ended || e.moving() || e.unplaced() {
		return
	}
	bookings, err := a.bookings(e.Held(), e.Window, e.Mapping)
	if err != nil || a.calendar.Book(bookings...) != nil {
		return
	}
	e.bookings, e.hosts = bookings, hostsOf(a.index(a.sub), l)
	e.countUses()
	a.of[l.ID()] = e
	a.enter(e)
}

// enter gives a lease on hosts its part of what it uses. A book enters what could not be.
func (a *Ahead) enter(e *entry) {
	engine, err := a.engine(a.sub)
	if err != nil || !e.onHosts() {
		return
	}
	if a.allocation.engine != engine {
		a.allocation = newAllocation(engine)
	}
	_ = a.allocation.enter(e)
}

// TakePlan takes in a host's plan in place of the one it had.
func (a *Ahead) TakePlan(p plan.Host) { a.plans[p.Host] = rollout.Prepare(p) }

// DropPlan takes one away.
func (a *Ahead) DropPlan(host vnet.HostID) { delete(a.plans, host) }

// prepared are the plans; a is nil if there are none.
func (a *Ahead) prepared() map[vnet.HostID]rollout.Prepared {
	if a == nil {
		return nil
	}
	return a.plans
}

// Drop takes a lease away.
func (a *Ahead) Drop(id vnet.LeaseID) {
	if e := a.of[id]; e != nil {
		delete(a.of, id)
		a.leave(e)
		_ = a.calendar.Release(e.bookings...) // they are booked
	}
}

// give gives a book of the same substrate the calendar, and the entries that are in it.
func (a *Ahead) give(b *Book) map[vnet.LeaseID]*entry {
	if a == nil || !sameLists(a.sub, b.sub) {
		return nil
	}
	a.Converge()
	for e := range a.off {
		a.leave(e)
	}
	for e := range a.allocation.claims {
		e.parts = inStore
	}
	b.calendar, b.solver, b.allocation = a.calendar, a.solver, a.allocation
	return a.of
}

func (a *Ahead) leave(e *entry) {
	a.allocation.leave(e)
	delete(a.off, e)
}

// Converge works out what leases get. One that the store gives another rate is left to the
// book; all are if their minima are more than there is.
func (a *Ahead) Converge() {
	if a.allocation.converge() != nil {
		a.allocation = allocation{}
		clear(a.off)
		return
	}
	for e, c := range a.allocation.claims {
		if !c.changed() {
			continue
		}
		if maps.Equal(c.rates(), e.Rates) {
			delete(a.off, e)
		} else {
			a.off[e] = true
		}
	}
}
