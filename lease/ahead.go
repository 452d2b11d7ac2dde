package lease

import (
	"sublet/embed/calendar"
	"sublet/vnet"
)

// Ahead is what a book makes of leases, made while nobody needs the book: a server that
// waits to lead has a calendar of what is stored. It is not safe for concurrent use.
type Ahead struct {
	resources
	of map[vnet.LeaseID]*entry
}

// NewAhead is without leases. The substrate is replaced by others, never changed.
func NewAhead(sub vnet.Substrate) *Ahead {
	return &Ahead{
		resources: resources{sub: sub, working: sub, calendar: calendar.New(), solver: new(Solver)},
		of:        make(map[vnet.LeaseID]*entry),
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
}

// Drop takes a lease away.
func (a *Ahead) Drop(id vnet.LeaseID) {
	if e := a.of[id]; e != nil {
		delete(a.of, id)
		_ = a.calendar.Release(e.bookings...) // they are booked
	}
}

// give gives a book of the same substrate the calendar, and the entries that are in it.
func (a *Ahead) give(b *Book) map[vnet.LeaseID]*entry {
	if a == nil || !sameLists(a.sub, b.sub) {
		return nil
	}
	b.calendar, b.solver = a.calendar, a.solver
	return a.of
}
