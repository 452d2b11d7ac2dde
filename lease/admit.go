package lease

import (
	"errors"
	"fmt"
	"time"

	"sublet/embed"
	"sublet/vnet"
)

// Admit books a request, or refuses it with a *vnet.Rejection that says what
// binds and offers the nearest request that would be admitted if it were asked
// for at once. A network that is to start now starts to deploy. Other errors:
// *vnet.FieldError for bad input, ErrConflict for a name in use. The tenant
// must be stated; owner is the user that root inside the nodes stands for.
func (b *Book) Admit(now time.Time, req vnet.Request, owner uint32) (vnet.Lease, error) {
	if err := b.Tick(now); err != nil {
		return vnet.Lease{}, err
	}
	req.Fill()
	if err := b.check(now, req); err != nil {
		return vnet.Lease{}, err
	}
	if err := b.taken(req); err != nil {
		return vnet.Lease{}, err
	}
	found, err := b.decide(now, req)
	if err != nil {
		return vnet.Lease{}, err
	}
	req.Start = found.window.Start
	if err := b.makeRoom(now, found.moves); err != nil {
		return vnet.Lease{}, fmt.Errorf("admit %s/%s: %w", req.Tenant, req.Network, err)
	}
	e, err := b.enter(vnet.Lease{Request: req, Owner: owner, Window: found.window, Mapping: found.mapping})
	if err != nil {
		return vnet.Lease{}, fmt.Errorf("admit %s/%s: %w", req.Tenant, req.Network, err)
	}
	if err := b.Tick(now); err != nil {
		return vnet.Lease{}, err
	}
	return e.Lease, nil
}

// decision is how a request would be admitted.
type decision struct {
	window  vnet.Window
	mapping vnet.Mapping
	moves   []move
}

// decide finds when and where a request fits: from its start, else from the
// earliest instant up to its latest start, else from its start once others
// have been moved. The error is a *vnet.Rejection when
// it does not. Nothing is changed.
func (b *Book) decide(now time.Time, req vnet.Request) (decision, error) {
	window := windowOf(now, req)
	mapping, err := b.embedOrLookAgain(req, window)
	var infeasible *embed.Infeasible
	switch {
	case err == nil:
		return decision{window: window, mapping: mapping}, nil
	case !errors.As(err, &infeasible):
		return decision{}, fmt.Errorf("admit %s/%s: %w", req.Tenant, req.Network, err)
	}
	if req.Before.After(window.Start) {
		if found, ok := b.postpone(now, req, infeasible); ok {
			return found, nil
		}
	}
	if found, ok := b.arrange(req, window, staying); ok {
		return found, nil
	}
	infeasible.Reasons = append(b.whatIsDown(infeasible.Reasons), b.immovable(req, window)...)
	return decision{}, b.reject(now, req, infeasible)
}

// postpone finds the earliest start up to a request's latest.
func (b *Book) postpone(now time.Time, req vnet.Request, why *embed.Infeasible) (decision, bool) {
	s := b.search(now, req, why)
	s.left = s.each
	moved, ok := s.later(req, req.Before)
	if !ok {
		return decision{}, false
	}
	s.left = 1
	mapping, ok := s.embed(moved)
	return decision{window: windowOf(now, moved), mapping: mapping}, ok
}

// check refuses bad input and names in use.
func (b *Book) check(now time.Time, req vnet.Request) error {
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
	if !req.Before.IsZero() && req.Before.Before(now) {
		return &vnet.FieldError{Path: "window.before", Problem: fmt.Sprintf(
			"%s has passed, it is %s: state a later time", stamp(req.Before), stamp(now))}
	}
	return nil
}

// taken is an error when a request's name is in use.
func (b *Book) taken(req vnet.Request) error {
	id := vnet.LeaseID{Tenant: req.Tenant, Network: req.Network}
	e, ok := b.entries[id]
	switch {
	case !ok:
		return nil
	case e.State != vnet.Ended:
		return fmt.Errorf("%w: there is a lease %s already (%s): release it or choose another name", ErrConflict, id, e.State)
	case e.holds():
		return fmt.Errorf("%w: the ended lease %s is still being removed from %s: wait or choose another name",
			ErrConflict, id, list(b.rollout.Remaining(id, e.everywhere())))
	}
	return nil
}

// enter adds an embedded lease to the book.
func (b *Book) enter(l vnet.Lease) (*entry, error) {
	union := l.Request.Union()
	numbers, err := b.vnis.number(b.index(b.sub), union.Links, l.Mapping)
	if err != nil {
		return nil, err
	}
	l.VNIs, l.Addresses = numbers, addresses(union)
	l.Serial, l.State, l.Stage = b.serial+1, vnet.Booked, -1
	l.Account = l.Request.Quote(b.Prices)
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
