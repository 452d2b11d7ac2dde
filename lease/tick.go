package lease

import (
	"fmt"
	"slices"
	"time"

	"sublet/vnet"
)

// Tick brings the book to a time. It runs to a fixed point: after it, nothing
// is left to do until the time, a host or a caller changes something; Next
// says when the time does. Phases of a lease are those of the table in
// phase.go.
//
// An error means that book and substrate contradict each other, which is a
// defect; plans then stay as they are.
func (b *Book) Tick(now time.Time) error {
	b.now, b.news = now, false
	b.openWindows(now) // pending -> opening
	for converged := false; !converged; {
		if err := b.advanceLeases(now); err != nil { // opening -> deployed, next stages, ends of windows
			return err
		}
		if err := b.recompute(now); err != nil { // rates, targets of hosts; publishes what shrinks
			return err
		}
		b.rollout.Step(now) // publishes what grows, once every live host has shrunk
		moved, err := b.advanceMoves(now)
		if err != nil {
			return err
		}
		converged = !moved
	}
	b.updateStates(now) // deploying, running, degraded, failed
	b.reclaim()         // draining -> history
	return nil
}

// advanceLeases does what is due: ends windows, then begins leases and stages, which may
// have waited for moves of leases that have ended.
func (b *Book) advanceLeases(now time.Time) error {
	for _, do := range []func(time.Time, *entry) error{b.endIfOver, b.advanceLease} {
		for _, e := range slices.Clone(b.active) {
			if err := do(now, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Book) endIfOver(now time.Time, e *entry) error {
	if e.Window.End.IsZero() || now.Before(e.Window.End) {
		return nil
	}
	return b.end(e.Window.End, e, whyOver)
}

func (b *Book) advanceLease(now time.Time, e *entry) error {
	if now.Before(e.Window.Start) {
		return nil
	}
	if e.State == vnet.Booked && b.awaitsMoves(e) {
		b.setState(e, vnet.Booked, "waits until links of other leases have moved to make room")
		return nil
	}
	stage := e.Request.StageAt(now.Sub(e.Window.Start))
	if e.State != vnet.Booked && stage <= e.Stage {
		return nil // stages never go back, whatever the clock does
	}
	if e.State != vnet.Booked && len(e.hosts) > 1 {
		b.rollout.Together(e.ID())
	}
	since := e.Window.Start
	if stage >= 0 {
		since = since.Add(e.Request.Stages[stage].After)
	}
	e.Lease = e.Metered(since)
	e.State, e.Stage, e.Message = vnet.Deploying, stage, ""
	e.parts, b.stale = nil, true
	b.touch(e)
	return nil
}

// Release ends a lease; one that has ended stays as it is. A booked one gives
// its window back unused. The error is ErrUnknown.
func (b *Book) Release(now time.Time, id vnet.LeaseID) error {
	e, ok := b.entries[id]
	if !ok {
		return fmt.Errorf("release %s: %w", id, ErrUnknown)
	}
	if e.State == vnet.Ended {
		return b.Tick(now)
	}
	if err := b.end(now, e, whyReleased); err != nil {
		return err
	}
	e.Window.End = e.Window.Start
	if now.After(e.Window.Start) {
		e.Window.End = now.Round(0).UTC()
	}
	return b.Tick(now)
}

// end takes a lease off the calendar and out of the plans. Its addresses and
// tunnel identifiers stay in use until its hosts have removed it.
func (b *Book) end(at time.Time, e *entry, why string) error {
	if err := b.calendar.Release(e.bookings...); err != nil {
		return fmt.Errorf("end lease %s: %w", e.ID(), err)
	}
	if e.onHosts() || e.unplaced() {
		b.markDirty(e)
		b.stale = true
	}
	if e.onHosts() {
		e.Lease = e.Metered(at)
	}
	e.ended(at, why)
	e.State, e.Rates, e.Message = vnet.Ended, nil, ""
	e.bookings, e.former, e.parts, e.failing = nil, nil, nil, time.Time{}
	e.Lost, e.Paused = nil, nil
	b.touch(e)
	return nil
}

// Next is when Tick has something to do if nothing else happens; zero: never.
func (b *Book) Next(now time.Time) time.Time {
	next := b.rollout.Next(now)
	if len(b.openings) > 0 {
		next = earlier(next, b.openings[0].Window.Start)
	}
	for _, e := range b.active {
		if e.State != vnet.Booked || !b.awaitsMoves(e) {
			next = earlier(next, e.next())
		}
		if e.moving() {
			next = earlier(next, e.waitsSince().Add(b.FailAfter))
			if waits := e.bridgeWaits(); waits.After(now) {
				next = earlier(next, waits)
			}
		}
		if !e.failing.IsZero() && e.State != vnet.Failed {
			next = earlier(next, e.failing.Add(e.patience))
		}
	}
	return next
}

// next is when the lease's window opens or ends, or its next stage begins.
func (e *entry) next() time.Time {
	if e.State == vnet.Booked {
		return e.Window.Start
	}
	if next := e.Request.NextTimed(e.Stage); next < len(e.Request.Stages) {
		return e.Window.Start.Add(e.Request.Stages[next].After)
	}
	return e.Window.End
}

// earlier is the earlier of two times of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
