package lease

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/vnet"
)

// Cleared is what becomes of a lease that has something where and when there is
// maintenance.
type Cleared struct {
	Lease vnet.Lease       // as it was
	Stays []string         // why; none: it goes elsewhere
	Moved vnet.Disturbance // what that does to it
}

// clear takes away what has something where and when there is maintenance, long
// before it begins: the new places are booked at once, so nobody else has them by
// then. As when a host is drained, leases that have not begun are embedded anew; of
// running ones links take other paths, and routers and switches go
// elsewhere, while nodes with what runs in them stay. A movable lease that has not
// begun may also begin later.
func (b *Book) clear(now time.Time, m vnet.Maintenance) ([]Cleared, error) {
	var list []Cleared
	later := NewEffort(mostLater, nil)
	for _, e := range b.concerned(m) {
		c, err := b.clearOne(now, e, m, later)
		if err != nil {
			return nil, fmt.Errorf("clear %s of %s: %w", m, e.ID(), err)
		}
		list = append(list, c)
	}
	b.reorderOpenings()
	return list, b.Tick(now)
}

// mostLater bounds the looking for later times, of all leases together: the book
// waits, and tenants choose how many leases there are and how hard they are to place.
const mostLater = 10 * QuickBudget

func (b *Book) clearOne(now time.Time, e *entry, m vnet.Maintenance, later *Effort) (Cleared, error) {
	c := Cleared{Lease: e.Lease}
	if c.Stays = staysFor(e); c.Stays != nil {
		return c, nil
	}
	was := *e
	var err error
	c.Stays, err = b.takeOff(now, e, func(cal *calendar.Calendar) (move, error) { return b.away(cal, e, m, later) })
	if err == nil && c.Stays == nil {
		c.Moved = disturbances([]move{{&was, e.Mapping, e.Window}})[0]
	}
	return c, err
}

// away finds another place for a lease while there is maintenance, or another
// time. The error is an *embed.Infeasible if there is neither.
func (b *Book) away(cal *calendar.Calendar, e *entry, m vnet.Maintenance, later *Effort) (move, error) {
	request := e.Request
	if e.onHosts() {
		request = leaving(e.Lease, m.Host)
	}
	request = e.Paused.Of(request)
	to, err := b.avoiding(cal, request, e.Window, e.Mapping, m, b.effort)
	if err == nil || e.State != vnet.Booked || !e.Request.Movable || !errors.As(err, new(*embed.Infeasible)) {
		return move{e, to, e.Window}, err
	}
	starts := append([]time.Time{calendar.RoundUp(m.End)}, startsIn(cal, m.End, request)...)
	for _, start := range starts[:min(len(starts), mostPostponed)] {
		if start.After(e.Request.Before) || later.Over() {
			break
		}
		window := windowOf(start, startingAt(request, start))
		if to, err := b.avoiding(cal, request, window, e.Mapping, m, later); err == nil {
			return move{e, to, window}, nil
		}
	}
	return move{}, err
}

// avoiding embeds a lease anew where there is no maintenance in a window; or, since
// it may have to stay where there is other maintenance, where there is not m.
func (b *Book) avoiding(cal *calendar.Calendar, r vnet.Request, w vnet.Window, was vnet.Mapping, m vnet.Maintenance, effort *Effort) (vnet.Mapping, error) {
	if m.Window().Overlaps(w) {
		if why := bound(r, was, m.Host); why != nil {
			return vnet.Mapping{}, &embed.Infeasible{Reasons: why}
		}
	}
	options := embed.Options{Effort: effort, From: b.now, Present: was}
	planned := b.Planned(w)
	if slices.Contains(planned, m) && len(planned) > 1 {
		if e, err := b.solver.without(b.openTo(r, was), b.sub, planned); err != nil {
			return vnet.Mapping{}, err
		} else if to, err := e.Embed(cal, r, w, options); err == nil {
			return to, nil
		}
	}
	only := slices.DeleteFunc(planned, func(other vnet.Maintenance) bool { return other.ID != m.ID })
	e, err := b.solver.without(b.openTo(r, was), b.sub, only)
	if err != nil {
		return vnet.Mapping{}, err
	}
	return e.Embed(cal, r, w, options)
}

// Instead looks for what the owner of a lease could have in its place while there
// is maintenance: the same anew, if that would be admitted, or what would be
// offered for it. What the lease holds is taken as free.
func (v *View) Instead(l vnet.Lease, m vnet.Maintenance, s *Solver, effort *Effort) ([]vnet.Offer, error) {
	free := v.under(m).with(s, effort)
	bookings, err := free.bookings(l.Held(), l.Window, l.Mapping)
	if err != nil {
		return nil, err
	}
	free.calendar, free.mostMoves = v.calendar.Clone(), 0
	if err := free.calendar.Release(bookings...); err != nil {
		return nil, nil // lost: nothing is booked
	}
	request := anew(v.now, l)
	d, err := free.Decide(request, s, effort)
	var no *vnet.Rejection
	switch {
	case errors.As(err, &no):
		return no.Offers, nil
	case err != nil:
		return nil, err
	}
	return []vnet.Offer{{Request: d.request, Account: d.request.Quote(v.pricesAt(d.mapping))}}, nil
}

// under is the view as if there were maintenance.
func (v *View) under(m vnet.Maintenance) *View {
	u := *v
	if !slices.Contains(u.sub.Maintenance, m) {
		u.sub.Hosts = slices.Clone(u.sub.Hosts)
		u.sub.Maintenance = append(slices.Clone(u.sub.Maintenance), m)
		u.setWorking()
	}
	return &u
}

// anew is the request of a lease for what is left of it; with stages, for all.
func anew(now time.Time, l vnet.Lease) vnet.Request {
	r := rewrite(l.Request)
	if !l.Window.Start.After(now) {
		r.Start, r.Before = time.Time{}, time.Time{}
		if !l.Window.End.IsZero() && len(r.Stages) == 0 {
			r.For = l.Window.End.Sub(now).Truncate(time.Second)
		}
	}
	return r
}
