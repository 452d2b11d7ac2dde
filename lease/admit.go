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
	window := windowOf(now, req)
	mapping, err := embed.Embed(b.sub, b.calendar, req, window)
	var infeasible *embed.Infeasible
	if errors.As(err, &infeasible) {
		return vnet.Lease{}, b.reject(now, req, infeasible)
	}
	if err != nil {
		return vnet.Lease{}, fmt.Errorf("admit %s/%s: %w", req.Tenant, req.Network, err)
	}
	req.Start = window.Start
	e, err := b.enter(vnet.Lease{Request: req, Owner: owner, Window: window, Mapping: mapping})
	if err != nil {
		return vnet.Lease{}, fmt.Errorf("admit %s/%s: %w", req.Tenant, req.Network, err)
	}
	if err := b.Tick(now); err != nil {
		return vnet.Lease{}, err
	}
	return e.Lease, nil
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
	id := vnet.LeaseID{Tenant: req.Tenant, Network: req.Network}
	e, ok := b.entries[id]
	switch {
	case !ok:
		return nil
	case e.State != vnet.Ended:
		return fmt.Errorf("%w: there is a lease %s already (%s): release it or choose another name", ErrConflict, id, e.State)
	case e.holds():
		return fmt.Errorf("%w: the ended lease %s is still being removed from %s: wait or choose another name",
			ErrConflict, id, list(b.rollout.Remaining(id, e.hosts)))
	}
	return nil
}

// enter adds an embedded lease to the book.
func (b *Book) enter(l vnet.Lease) (*entry, error) {
	union := l.Request.Union()
	numbers, err := b.vnis.number(b.sub, union.Links, l.Mapping)
	if err != nil {
		return nil, err
	}
	l.VNIs, l.Addresses = numbers, addresses(union.All())
	l.Serial, l.State, l.Stage = b.serial+1, vnet.Booked, -1
	e := &entry{Lease: l, hosts: hostsOf(b.sub, l)}
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
