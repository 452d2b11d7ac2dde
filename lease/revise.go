package lease

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/lease/policy"
	"sublet/vnet"
)

// Keeps says whether a request keeps what its tenant may lease; nil: it does.
type Keeps func(vnet.Request) *vnet.Rejection

// Revise gives a live lease another request: see revised for what may differ.
// A lease on its hosts keeps its places and paths; one that has not begun may
// be placed anew. All of the change is made or none. With try, only what would
// come of it is said.
//
// The answer is the lease and in what its requests differ; nothing: the lease
// is as asked. A refusal is a *vnet.Rejection whose offers would be taken if
// they were asked for at once. Other errors: *vnet.FieldError for bad input and
// for what cannot be changed, ErrUnknown, ErrConflict while nothing of the
// lease can be changed.
func (b *Book) Revise(now time.Time, id vnet.LeaseID, asked vnet.Request, keeps Keeps, try bool) (vnet.Lease, []vnet.Change, error) {
	if err := b.Tick(now); err != nil {
		return vnet.Lease{}, nil, err
	}
	e, ok := b.entries[id]
	if !ok {
		return vnet.Lease{}, nil, fmt.Errorf("change %s: %w", id, ErrUnknown)
	}
	if n := max(linksOf(e.Request), linksOf(asked)); n > MostRevised {
		return vnet.Lease{}, nil, &vnet.FieldError{Path: "links", Problem: fmt.Sprintf(
			"a network with %d links, more than %d, cannot be changed: release it and ask for another one", n, MostRevised)}
	}
	r, err := b.revision(now, e, asked, keeps)
	if err != nil {
		return vnet.Lease{}, nil, err
	}
	r = b.inAnyOrder(now, r)
	changes := revisions(e.Request, r.request)
	if len(changes) == 0 {
		return e.Lease, nil, nil
	}
	if err := r.decide(); err != nil || try {
		return e.Lease, changes, err
	}
	if err := b.revise(now, r); err != nil {
		return vnet.Lease{}, nil, fmt.Errorf("change %s: %w", id, err)
	}
	return e.Lease, changes, b.Tick(now)
}

// MostRevised is how many links a network may have that is changed: two requests
// of that size are compared in some 40 ms, while the book waits.
const MostRevised = 2000

// linksOf counts those of all stages, also ones that come back.
func linksOf(r vnet.Request) int {
	n := len(r.Links)
	for _, s := range r.Stages {
		n += len(s.Links) + len(s.Add.Links)
	}
	return n
}

// revision is a change of a lease that is being decided.
type revision struct {
	lease   *entry
	request vnet.Request
	keeps   Keeps

	form bool // it differs in more than rates and windows

	resources                    // calendar: without what the lease has booked
	bookings  []calendar.Booking // once decided
	mapping   vnet.Mapping
}

// revision checks what is asked.
func (b *Book) revision(now time.Time, e *entry, asked vnet.Request, keeps Keeps) (revision, error) {
	switch {
	case e.State == vnet.Ended:
		return revision{}, fmt.Errorf("%w: %s has ended: ask for it anew", ErrConflict, e.ID())
	case e.Lost != nil:
		return revision{}, fmt.Errorf("%w: %s cannot be changed while it is lost (%s)", ErrConflict, e.ID(), brief(e.Lost.Reasons))
	case e.moving():
		return revision{}, fmt.Errorf("%w: links of %s are being moved: try again in a moment", ErrConflict, e.ID())
	}
	if err := e.unbegun(asked); err != nil {
		return revision{}, err
	}
	request, err := revised(e.Request, asked)
	var differs *vnet.FieldError
	form := errors.As(err, &differs)
	if form && e.Paused != nil {
		return revision{}, fmt.Errorf("%w: %s is paused, and gets no other nodes or links meanwhile (%w): let it resume first", ErrConflict, e.ID(), err)
	}
	if form {
		request, err = b.formed(now, e, asked)
	}
	if err == nil {
		err = request.Check()
	}
	if err != nil {
		return revision{}, err
	}
	r := revision{lease: e, request: request, keeps: keeps, form: form, resources: b.resources, mapping: e.Mapping}
	if end := r.window(request).End; !end.IsZero() && !end.After(now) {
		return revision{}, &vnet.FieldError{Path: "window.for", Problem: fmt.Sprintf(
			"the window would have ended at %s, it is %s: state a longer one, or release the lease", stamp(end), stamp(now))}
	}
	r.effort = NewEffort(QuickBudget, nil) // the book waits
	r.calendar = b.withFormer().Clone()
	if err := r.calendar.Release(e.bookings...); err != nil || !form || !e.onHosts() {
		return r, err
	}
	return r, r.bookLeaving(now)
}

// ordersBudget is for all orders of the functions of a changed request together.
const ordersBudget = 4 * QuickBudget

// inAnyOrder is the revision with the order of the functions of new unordered chains by
// which least bandwidth is taken; if it fits in none, it stays as it is.
func (b *Book) inAnyOrder(now time.Time, r revision) revision {
	orders := r.request.Orders(r.lease.Request)
	if !r.form || len(orders) == 1 {
		return r
	}
	effort := NewEffort(ordersBudget, nil) // the book waits
	best, fits := r, false
	for i, order := range orders {
		tried := r
		if i > 0 {
			var err error
			if tried, err = b.revision(now, r.lease, order, r.keeps); err != nil {
				continue // a program would have other interfaces
			}
		}
		tried.effort = effort
		if found := tried; found.refusal(found.request) == nil && (!fits || taken(found.request, found.mapping) < taken(best.request, best.mapping)) {
			best, fits = found, true
		}
	}
	best.effort = NewEffort(QuickBudget, nil)
	return best
}

// window is that of the lease with another request.
func (r *revision) window(request vnet.Request) vnet.Window {
	return windowOf(r.lease.Window.Start, request)
}

// decide finds out whether there is room: where the lease is or, if it has not
// begun, anywhere.
func (r *revision) decide() error {
	refusal := r.refusal(r.request)
	if refusal == nil {
		return nil
	}
	refusal.Never = "what is booked and what the quota leaves allow no change of this kind: ask for less, or for another network"
	r.offer(refusal)
	return refusal
}

// refusal says why a request is not possible; nil: it is.
func (r *revision) refusal(request vnet.Request) *vnet.Rejection {
	if no := r.breach(request); no != nil {
		return &vnet.Rejection{Reasons: no.Reasons}
	}
	if r.form && r.lease.onHosts() {
		return r.place(request)
	}
	if !r.form && r.fits(request) {
		return nil
	}
	held := request
	if r.lease.onHosts() {
		as := r.lease.Lease
		as.Request = request
		held = keepingNodes(as, r.working)
	}
	mapping, err := r.embedAnew(r.calendar, held, r.window(request), r.lease.Mapping)
	var infeasible *embed.Infeasible
	switch {
	case errors.As(err, &infeasible):
		return &vnet.Rejection{Reasons: r.whatIsDown(infeasible.Reasons)}
	case err != nil:
		return &vnet.Rejection{Reasons: []string{err.Error()}}
	case r.lease.onHosts():
		return &vnet.Rejection{Reasons: []string{"there is room on other paths only, and links of a running network keep theirs"}}
	}
	r.mapping = mapping
	if r.fits(request) {
		return nil
	}
	return &vnet.Rejection{Reasons: []string{"there is no room where it could be placed"}}
}

// breach says which limit of the tenant's a request breaks.
func (r *revision) breach(request vnet.Request) *vnet.Rejection {
	if r.keeps == nil {
		return nil
	}
	if r.lease.State != vnet.Booked || !request.Movable { // its start is fixed
		request.Before = time.Time{}
	}
	return r.keeps(r.lease.Paused.Of(request))
}

// fits says whether a request has room where the mapping is, and notes what it books.
func (r *revision) fits(request vnet.Request) (ok bool) {
	bookings, err := r.resources.bookings(r.lease.Paused.Of(request), r.window(request), r.mapping)
	if ok = err == nil && r.fit(r.calendar, bookings); ok {
		r.bookings = bookings
	}
	return ok
}

// possible is refusal without a search for another place.
func (r *revision) possible(request vnet.Request) bool {
	if r.form {
		return r.refusal(request) == nil
	}
	return r.breach(request) == nil && r.fits(request)
}

// revise carries a decided change out.
func (b *Book) revise(now time.Time, r revision) error {
	e := r.lease
	if r.form {
		return b.reform(now, r)
	}
	if err := b.calendar.Release(e.bookings...); err != nil {
		return err
	}
	e.Lease = e.Metered(now)
	e.Account = e.Account.Revised(e.Held(), e.Paused.Of(r.request), now.Sub(e.Window.Start))
	before, window := e.Topology(), r.window(r.request)
	e.overrule(r.request)
	e.Request = r.request
	e.Revision++
	e.uses, e.Undone = nil, ""
	defer e.countUses()
	if !reflect.DeepEqual(r.mapping, e.Mapping) {
		return b.remap(now, e, move{e, r.mapping, window}, vnet.MovePrepares, 0)
	}
	e.Window, e.bookings = window, r.bookings
	if e.onHosts() && !reflect.DeepEqual(before, e.Topology()) {
		b.rebuild(e)
	}
	b.touch(e)
	return b.calendar.Book(e.bookings...)
}

// overrule drops what was asked by command of links of which another request
// states something else for the running stage.
func (e *entry) overrule(by vnet.Request) {
	impaired, states, is := maps.Clone(e.Impaired), maps.Clone(e.LinkStates), by.At(e.Stage)
	for _, was := range e.Request.At(e.Stage).Links {
		l, ok := is.Link(was.Name)
		if ok && l.Impair != was.Impair {
			delete(impaired, l.Name)
		}
		if ok && l.Down != was.Down {
			delete(states, l.Name)
		}
	}
	e.Impaired, e.LinkStates = impaired, states
}

// rebuild gives a lease's hosts new targets; it runs again once they have them.
func (b *Book) rebuild(e *entry) {
	if e.State.Holds() {
		e.State, e.Message = vnet.Deploying, ""
	}
	e.parts, b.stale = nil, true
}

// Without is the book without a lease, for limits that it is to keep anew.
func (b *Book) Without(id vnet.LeaseID) policy.Book { return without{b, b.entries[id]} }

type without struct {
	book *Book
	gone *entry
}

// Holdings are the book's.
func (w without) Holdings(has func(vnet.TenantID) bool) []policy.Holding {
	return w.book.holdings(has, w.gone)
}
