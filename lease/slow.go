package lease

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sublet/embed"
	"sublet/embed/calendar"
)

// LinkTakes notes how long frames were measured to take by a link, hosts' delays
// included; zero: as long as is stated. Admission counts on the longer of the two from
// then on. What does not keep its bounds any more goes elsewhere, as when room is made
// for others (inPlace), if its owner allows that it moves; the rest stays. The error wraps
// ErrConflict while leases move, and ErrNoElement if there is no such link.
func (b *Book) LinkTakes(now time.Time, name string, takes time.Duration) error {
	sub := b.sub
	sub.Links = slices.Clone(sub.Links)
	for i, l := range sub.Links {
		if l.Name != name {
			continue
		}
		if l.Takes == takes {
			return nil
		}
		sub.Links[i].Takes = takes
		if err := b.SetSubstrate(now, sub); err != nil {
			return fmt.Errorf("link %s takes %s: %w", name, takes, err)
		}
		return b.leaveSlow(now)
	}
	return fmt.Errorf("link %q: %w", name, ErrNoElement)
}

// leaveSlow takes leases that are late to where they are not.
func (b *Book) leaveSlow(now time.Time) error {
	engine, err := b.engine(b.sub)
	if err != nil {
		return err
	}
	for _, e := range slices.Clone(b.live) {
		if !e.mayMove() || !late(engine, e) {
			continue
		}
		if err := b.hasten(now, e); err != nil {
			return fmt.Errorf("take %s off what is slow: %w", e.ID(), err)
		}
	}
	return b.Tick(now)
}

// late says whether links of a lease take longer than their bounds.
func late(engine *embed.Embedder, e *entry) bool {
	for _, l := range e.Request.Union().Links {
		if l.Latency > 0 && engine.Latency(l, e.Mapping) > l.Latency {
			return true
		}
	}
	return false
}

// hasten takes a lease to where it keeps its bounds, if there is such a place.
func (b *Book) hasten(now time.Time, e *entry) error {
	requests := inPlace(e.Lease, b.working)
	if !e.onHosts() {
		requests = requests[:1]
		requests[0] = e.Request
	}
	for _, r := range requests {
		stays, err := b.takeOff(now, e, func(cal *calendar.Calendar) (move, error) {
			to, err := b.embedAnew(cal, r, e.Window, e.Mapping)
			return move{e, to, e.Window}, err
		})
		if errors.As(err, new(*embed.Infeasible)) || err == nil && stays != nil {
			continue
		}
		return err
	}
	return nil
}
