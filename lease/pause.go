package lease

import (
	"fmt"
	"time"

	"sublet/vnet"
)

// Pause has a lease's nodes stand still until Resume. With give back others may
// use the rates of its links meanwhile; its window goes on. One that is paused so
// stays as it is. Errors: ErrUnknown, ErrConflict.
func (b *Book) Pause(now time.Time, id vnet.LeaseID, giveBack bool) error {
	if err := b.Tick(now); err != nil {
		return err
	}
	e, ok := b.entries[id]
	if !ok {
		return fmt.Errorf("pause %s: %w", id, ErrUnknown)
	}
	if e.Paused != nil && e.Paused.GaveBack == giveBack {
		return nil
	}
	if err := e.mayPause(giveBack); err != nil {
		return err
	}
	held := e.Held()
	pause := vnet.Pause{Since: now.Round(0).UTC(), GaveBack: giveBack}
	if e.Paused != nil {
		pause.Since = e.Paused.Since
	}
	bookings, err := b.bookings(pause.Of(e.Request), e.Window, e.Mapping)
	if err != nil {
		return err
	}
	if err := b.calendar.Release(e.bookings...); err != nil {
		return err
	}
	e.Lease = e.Metered(now)
	e.Paused, e.bookings = &pause, bookings
	return b.reheld(now, e, held)
}

// mayPause says why a lease cannot be paused now.
func (e *entry) mayPause(giveBack bool) error {
	switch {
	case e.Lost != nil:
		return fmt.Errorf("%w: %s cannot be paused while it is lost (%s)", ErrConflict, e.ID(), brief(e.Lost.Reasons))
	case !e.onHosts():
		return fmt.Errorf("%w: %s is %s: only a network that runs can be paused", ErrConflict, e.ID(), e.State)
	case e.moving():
		return fmt.Errorf("%w: links of %s are being moved: try again in a moment", ErrConflict, e.ID())
	case e.Paused != nil && !giveBack:
		return fmt.Errorf("%w: %s is paused and gave its rates back: let it resume first", ErrConflict, e.ID())
	}
	return nil
}

// reheld goes on with a lease that holds other rates than before: its former
// bookings have been released.
func (b *Book) reheld(now time.Time, e *entry, held vnet.Request) error {
	e.Account = e.Account.Revised(held, e.Held(), now.Sub(e.Window.Start))
	e.uses, e.parts, b.stale = nil, nil, true
	e.countUses()
	b.rebuild(e)
	b.touch(e)
	if err := b.calendar.Book(e.bookings...); err != nil {
		return err
	}
	return b.Tick(now)
}

// Resume lets the nodes of a paused lease go on, with the rates that they had. One
// that is not paused stays as it is. Rates that were given back are admitted anew:
// a refusal is a *vnet.Rejection, whose offers would be taken if the request were
// changed to them first. Other errors: ErrUnknown, ErrConflict.
func (b *Book) Resume(now time.Time, id vnet.LeaseID, keeps Keeps) error {
	if err := b.Tick(now); err != nil {
		return err
	}
	e, ok := b.entries[id]
	switch {
	case !ok:
		return fmt.Errorf("resume %s: %w", id, ErrUnknown)
	case e.State == vnet.Ended:
		return fmt.Errorf("%w: %s has ended: ask for it anew", ErrConflict, id)
	case e.Paused == nil:
		return nil
	case e.Lost != nil:
		return fmt.Errorf("%w: %s cannot resume while it is lost (%s)", ErrConflict, id, brief(e.Lost.Reasons))
	case e.moving():
		return fmt.Errorf("%w: links of %s are being moved: try again in a moment", ErrConflict, id)
	}
	held, bookings := e.Held(), e.bookings
	if e.Paused.GaveBack {
		r, err := b.resumption(e, keeps)
		if err == nil {
			err = r.decide()
		}
		if err != nil {
			return err
		}
		bookings = r.bookings
	}
	if err := b.calendar.Release(e.bookings...); err != nil {
		return err
	}
	e.Lease = e.Metered(now)
	e.Paused, e.bookings = nil, bookings
	return b.reheld(now, e, held)
}

// resumption is the change of a lease from what it holds to what it asks for.
func (b *Book) resumption(e *entry, keeps Keeps) (revision, error) {
	now := *e // as if it had asked for what it holds
	now.Request, now.Paused = e.Held(), nil
	r := revision{lease: &now, request: e.Request, keeps: keeps, resources: b.resources, mapping: e.Mapping}
	r.effort = NewEffort(QuickBudget, nil) // the book waits
	r.calendar = b.withFormer().Clone()
	return r, r.calendar.Release(e.bookings...)
}
