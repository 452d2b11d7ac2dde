package lease

import (
	"errors"
	"fmt"
	"time"

	"sublet/embed"
	"sublet/plan"
	"sublet/vnet"
)

// ErrChanged is wrapped by Commit when the book has changed so that a decision
// does not hold any more: decide again.
var ErrChanged = errors.New("the book has changed since this was decided")

// Admit books a request. A network that is to start now starts to deploy. The
// tenant must be stated; owner is the user that root inside the nodes stands
// for.
//
// A refusal is a *vnet.Rejection: it says what binds, and offers the nearest
// requests that would be admitted if they were asked for at once. Other errors:
// *vnet.FieldError for bad input, ErrConflict for a name in use.
func (b *Book) Admit(now time.Time, req vnet.Request, owner uint32) (vnet.Lease, error) {
	if err := b.Tick(now); err != nil {
		return vnet.Lease{}, err
	}
	req.Fill()
	if err := b.Taken(req); err != nil {
		return vnet.Lease{}, err
	}
	found, err := b.view(now).Decide(req, b.solver, NewEffort(Budget, nil))
	if err != nil {
		return vnet.Lease{}, err
	}
	return b.apply(now, found, owner)
}

// Commit books what was decided with a View. When the book does not allow it
// any more, the error wraps ErrChanged and nothing is changed. Other errors:
// ErrConflict for a name in use.
func (b *Book) Commit(now time.Time, d Decision, owner uint32) (vnet.Lease, error) {
	if err := b.Tick(now); err != nil {
		return vnet.Lease{}, err
	}
	if err := b.Taken(d.request); err != nil {
		return vnet.Lease{}, err
	}
	if !b.allows(now, d) {
		return vnet.Lease{}, fmt.Errorf("admit %s/%s: %w", d.request.Tenant, d.request.Network, ErrChanged)
	}
	return b.apply(now, d, owner)
}

// allows says whether a decision is still possible: on the same substrate,
// beside what is booked now, and with the same leases moved.
func (b *Book) allows(now time.Time, d Decision) bool {
	over := !d.window.End.IsZero() && !now.Before(d.window.End)
	if over || !sameLists(b.sub, d.sub) || !sameLists(b.working, d.working) || !sameLists(b.open, d.open) {
		return false
	}
	if len(d.moves) == 0 {
		bookings, err := b.bookings(d.request, d.window, d.mapping)
		return err == nil && b.fit(b.calendar, bookings)
	}
	return b.allowsMoves(d)
}

// apply carries out a decision: it begins the moves and enters the lease.
func (b *Book) apply(now time.Time, d Decision, owner uint32) (vnet.Lease, error) {
	req := d.request
	req.Start = d.window.Start
	if err := b.makeRoom(now, d.moves); err != nil {
		return vnet.Lease{}, fmt.Errorf("admit %s/%s: %w", req.Tenant, req.Network, err)
	}
	e, err := b.enter(vnet.Lease{Request: req, Owner: owner, Window: d.window, Mapping: d.mapping})
	if err != nil {
		return vnet.Lease{}, fmt.Errorf("admit %s/%s: %w", req.Tenant, req.Network, err)
	}
	if err := b.Tick(now); err != nil {
		return vnet.Lease{}, err
	}
	return e.Lease, nil
}

// Decision is how a request would be admitted, as decided at an instant about
// the substrate there was.
type Decision struct {
	request            vnet.Request
	now                time.Time
	sub, working, open vnet.Substrate

	window  vnet.Window
	mapping vnet.Mapping
	moves   []move
}

// Request is what was decided about.
func (d Decision) Request() vnet.Request { return d.request }

// decision is one about a request.
func (v *View) decision(req vnet.Request, w vnet.Window, m vnet.Mapping) Decision {
	return Decision{request: req, now: v.now, sub: v.sub, working: v.working, open: v.open, window: w, mapping: m}
}

// Decide finds when and where a request fits: from its start, else from the
// earliest instant up to its latest start, else from its start once other
// leases have been moved. When it does not fit the error is a *vnet.Rejection.
// It is Undecided, and the effort Short, if the effort ended the search.
func (v *View) Decide(req vnet.Request, s *Solver, effort *Effort) (Decision, error) {
	v = v.with(s, effort)
	req.Fill()
	req = v.takeWay(req)
	if err := check(v.now, req); err != nil {
		return Decision{}, err
	}
	window := windowOf(v.now, req)
	req, mapping, err := v.embedInAnyOrder(req, window)
	var infeasible *embed.Infeasible
	switch {
	case err == nil:
		return v.decision(req, window, mapping), nil
	case !errors.As(err, &infeasible):
		return Decision{}, fmt.Errorf("admit %s/%s: %w", req.Tenant, req.Network, err)
	}
	if found, ok := v.alternative(req, window, infeasible); ok {
		return found, nil
	}
	infeasible.Reasons = append(v.whatIsDown(infeasible.Reasons), v.immovable(req, window)...)
	return Decision{}, v.reject(req, infeasible)
}

// embedInAnyOrder is embedWithRetry for the order of the functions of unordered chains
// by which least bandwidth is taken. If the request fits in none, what is said is of
// the order that it has.
func (v *View) embedInAnyOrder(req vnet.Request, w vnet.Window) (vnet.Request, vnet.Mapping, error) {
	best, mapping, err := req, vnet.Mapping{}, error(nil)
	for i, r := range req.Orders(vnet.Request{}) {
		if i > 0 && check(v.now, r) != nil {
			continue
		}
		m, failed := v.embedWithRetry(r, w)
		switch {
		case failed != nil && i == 0:
			err = failed
		case failed == nil && (i == 0 || err != nil || taken(r, m) < taken(best, mapping)):
			best, mapping, err = r, m, nil
		}
	}
	return best, mapping, err
}

// taken is the bandwidth that a mapping takes of links, over all of them.
func taken(r vnet.Request, m vnet.Mapping) (sum vnet.Rate) {
	for _, l := range r.Links {
		hops := vnet.Rate(len(m.Links[l.Name]))
		sum += hops * (l.Bandwidth[vnet.Forward].Min + l.Bandwidth[vnet.Reverse].Min + 1) // of best effort, hops count
	}
	return sum
}

// takeWay is a request whose routers that take any way out, and nodes that join
// anywhere, have the first one on
// which there is room for all that the request asks of it, else the first one.
func (v *View) takeWay(r vnet.Request) vnet.Request {
	var ways, joins []string
	for _, n := range v.working.NAT {
		ways = append(ways, n.Name)
	}
	for _, j := range v.working.Joins {
		joins = append(joins, j.Name)
	}
	r = v.takeFirst(r, ways, (*vnet.Request).TakeWay)
	return v.takeFirst(r, joins, (*vnet.Request).TakeJoin)
}

// takeFirst is a request that takes the first of some offers with room for it.
func (v *View) takeFirst(r vnet.Request, offered []string, take func(*vnet.Request, string) bool) vnet.Request {
	first := r
	for i, name := range offered {
		tried := r
		if !take(&tried, name) {
			return r
		}
		if i == 0 {
			first = tried
		}
		if e, err := v.engine(v.working); err == nil && e.RoomOutside(v.calendar, tried, windowOf(v.now, tried), v.now) {
			return tried
		}
	}
	return first
}

// partOfEach bounds what each alternative may take of the effort left: one part
// in so many.
const partOfEach = 3

// alternative finds a later start, or leases whose moves make room.
func (v *View) alternative(req vnet.Request, window vnet.Window, why *embed.Infeasible) (Decision, bool) {
	if req.Before.After(window.Start) {
		done := v.effort.Part(partOfEach)
		found, ok := v.postpone(req, why)
		if done(); ok {
			return found, true
		}
	}
	defer v.effort.Part(partOfEach)()
	return v.arrange(req, window, inPlace)
}

// postpone finds the earliest start up to a request's latest.
func (v *View) postpone(req vnet.Request, why *embed.Infeasible) (Decision, bool) {
	s := v.search(req, why)
	s.left = s.each
	moved, ok := s.later(req, req.Before)
	if !ok {
		return Decision{}, false
	}
	s.left = 1
	mapping, ok := s.embed(moved)
	return v.decision(req, windowOf(v.now, moved), mapping), ok
}

// check refuses bad input.
func check(now time.Time, req vnet.Request) error {
	if err := req.Check(); err != nil {
		return err
	}
	if req.Tenant == "" {
		return &vnet.FieldError{Path: "tenant", Problem: "is missing: state who leases"}
	}
	if !req.Start.IsZero() && req.Start.Before(now) {
		return &vnet.FieldError{Path: "window.start", Problem: fmt.Sprintf(
			"%s has passed, it is %s: state a later time, or leave it out to start now", stamp(req.Start), stamp(now))}
	}
	for i, s := range req.Stages {
		if s.OnCommand && s.After != 0 {
			return &vnet.FieldError{Path: fmt.Sprintf("stages[%d].after", i), Problem: "is stated of a stage that begins on command: leave out one of the two"}
		}
	}
	if !req.Before.IsZero() && req.Before.Before(now) {
		return &vnet.FieldError{Path: "window.before", Problem: fmt.Sprintf(
			"%s has passed, it is %s: state a later time", stamp(req.Before), stamp(now))}
	}
	return nil
}

// Taken is an error when a request's name is in use.
func (b *Book) Taken(req vnet.Request) error {
	id := vnet.LeaseID{Tenant: req.Tenant, Network: req.Network}
	e, ok := b.entries[id]
	switch {
	case !ok:
		return nil
	case e.State != vnet.Ended:
		return fmt.Errorf("%w: there is a lease %s already (%s): change it (sublet apply), release it or choose another name", ErrConflict, id, e.State)
	case e.current() == phaseDraining:
		return fmt.Errorf("%w: the ended lease %s is still being removed from %s: wait or choose another name",
			ErrConflict, id, list(b.rollout.Remaining(id, e.allHosts())))
	}
	return nil
}

// enter adds an embedded lease to the book.
func (b *Book) enter(l vnet.Lease) (*entry, error) {
	union := l.Request.Union()
	if err := plan.CheckChains(b.index(b.sub), l.Mapping, union.Links); err != nil {
		return nil, err
	}
	numbers, err := b.vnis.number(b.index(b.sub), b.sources(), union.Links, l.Mapping)
	if err != nil {
		return nil, err
	}
	seen := union.Controlled()
	l.VNIs, l.LinkAddresses = numbers, linkAddresses(l.Request, seen)
	l.Addresses = addresses(seen, l.LinkAddresses)
	l.Serial, l.State, l.Stage = b.serial+1, vnet.Booked, -1
	l.Account = l.Request.Quote(b.Prices.At(b.sub, l.Mapping, vnet.Mapping{}))
	l.Life = vnet.Life{Admitted: b.now.Round(0).UTC()}
	e := &entry{Lease: l, hosts: hostsOf(b.index(b.sub), l)}
	if err := b.book(e); err != nil {
		b.vnis.free(numbers)
		return nil, err
	}
	b.serial++
	b.entries[l.ID()] = e
	b.touch(e)
	return e, nil
}

// windowOf is a request's window if it is admitted now.
func windowOf(now time.Time, req vnet.Request) vnet.Window {
	w := vnet.Window{Start: req.Start}
	if w.Start.IsZero() {
		w.Start = now.Round(0).UTC()
	}
	if req.For > 0 {
		w.End = w.Start.Add(req.For)
	}
	return w
}
