package lease

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// A running lease is moved in three phases. First its hosts get what the new
// paths need beside the old ones (relays); when all have it, the ends of the
// links switch; when all have, the old paths go. The calendar holds the new
// paths from the beginning, and a lease that was promised room on the old ones
// waits until the ends have switched (phaseOpening). While both are in use each
// lease gets the smaller of the rates that the old and the new paths leave it.
// So nothing is over-booked at any instant. Until the old paths go the move can
// be rolled back, and is when a host reports an error or makes no progress.

// remap gives a lease another embedding, whose bookings it enters; the old
// ones must have been released. A lease that is not on its hosts yet simply
// gets it.
func (b *Book) remap(now time.Time, e *entry, m move, phase vnet.MovePhase, serial uint64) error {
	to := m.to
	to.Places = e.Mapping.Places
	links := e.Request.Union().Links
	var changed []vnet.VirtualLink
	for _, l := range links {
		if !e.onHosts() || !sameRoute(l, e.Mapping, to) {
			changed = append(changed, l)
		}
	}
	live := phase == vnet.MoveCopies && b.goesLive(e, e.Mapping, to)
	if (phase == vnet.MovePrepares || live) && e.onHosts() {
		to.Places = turned(e.Mapping, to, changed)
	}
	numbers, err := b.vnis.number(b.index(b.sub), b.sources(), changed, to)
	if err != nil {
		return err
	}
	bookings, err := b.bookings(e.Held(), m.window, to)
	if err == nil {
		err = b.calendar.Book(bookings...)
	}
	if err != nil {
		b.vnis.free(numbers)
		return err
	}
	b.markDirty(e)
	former, from := make(map[string][]vnet.VNI), e.Mapping
	kept := maps.Clone(e.VNIs)
	for _, l := range changed {
		former[l.Name] = kept[l.Name]
		delete(kept, l.Name)
	}
	maps.Copy(kept, numbers)
	e.former = e.bookings
	e.bookings, e.Mapping, e.VNIs, e.parts, b.stale = bookings, to, kept, nil, true
	e.Window, e.Request.Start = m.window, m.window.Start
	b.recordMove(now, e, from, former, phase, serial)
	if e.Move != nil {
		e.Move.Live = live
	}
	b.markDirty(e)
	b.touch(e)
	return nil
}

// recordMove notes the former paths that a lease on its hosts still uses, and the
// hosts that will have nothing of it.
func (b *Book) recordMove(now time.Time, e *entry, from vnet.Mapping, former map[string][]vnet.VNI, phase vnet.MovePhase, serial uint64) {
	was := append(e.hosts, e.formerHosts()...)
	e.hosts = hostsOf(b.index(b.sub), e.Lease)
	if !e.onHosts() {
		b.vnis.free(former)
		e.former = nil
		return
	}
	m := &vnet.Move{Phase: phase, From: from, VNIs: former, For: serial, Since: now.Round(0).UTC()}
	if e.Move != nil { // what it was still leaving
		for link, numbers := range e.Move.VNIs {
			m.VNIs[link] = append(m.VNIs[link], numbers...)
		}
	}
	for _, host := range was {
		if !slices.Contains(e.hosts, host) && !slices.Contains(m.Leaves, host) {
			m.Leaves = append(m.Leaves, host)
		}
	}
	slices.Sort(m.Leaves)
	e.Move = m
}

// sameRoute says whether two embeddings carry a link alike.
func sameRoute(l vnet.VirtualLink, a, b vnet.Mapping) bool {
	return a.Nodes[l.Ends[0]] == b.Nodes[l.Ends[0]] && a.Nodes[l.Ends[1]] == b.Nodes[l.Ends[1]] &&
		reflect.DeepEqual(a.Paths(l.Name), b.Paths(l.Name))
}

// formerHosts still have something of former embeddings.
func (e *entry) formerHosts() []vnet.HostID {
	if e.Move == nil {
		return nil
	}
	return e.Move.Leaves
}

// allHosts have anything of a lease, or had.
func (e *entry) allHosts() []vnet.HostID { return slices.Concat(e.hosts, e.formerHosts()) }

// beforeMove is a moving lease as it was.
func (e *entry) beforeMove() vnet.Lease {
	l := e.Lease
	l.Mapping, l.VNIs = e.Move.From, maps.Clone(e.VNIs)
	maps.Copy(l.VNIs, e.Move.VNIs)
	if e.Move.Form != nil {
		takeForm(&l, *e.Move.Form)
	}
	return l
}

// awaitsMoves says whether a booked lease must wait for moves: leases that move
// still use what it was promised.
func (b *Book) awaitsMoves(e *entry) bool {
	mine := keysOf(e.bookings)
	return slices.ContainsFunc(b.active, func(m *entry) bool {
		return m != e && m.moving() && (m.Move.For == e.Serial || slices.ContainsFunc(m.former, func(k calendar.Booking) bool { return mine[k.Key] }))
	})
}

func keysOf(bookings []calendar.Booking) map[string]bool {
	keys := make(map[string]bool, len(bookings))
	for _, k := range bookings {
		keys[k.Key] = true
	}
	return keys
}

// advanceMoves takes every move as far as hosts have come: to its next phase, or
// back when hosts report an error or nothing happens for FailAfter. True:
// targets of hosts have changed.
func (b *Book) advanceMoves(now time.Time) (changed bool, err error) {
	for _, e := range slices.Clone(b.active) {
		if e.Move == nil {
			continue
		}
		stuck := len(b.rollout.Errors(e.ID(), e.allHosts())) > 0 || now.Sub(e.waitsSince()) >= b.FailAfter
		missing := b.rollout.Missing(e.ID(), e.allHosts())
		switch {
		case !e.moving() && len(missing) == 0 && len(b.rollout.Unsure(e.ID(), e.allHosts())) == 0:
			b.vnis.free(e.Move.VNIs)
			e.Move = nil
			b.touch(e)
		case !e.moving():
		case (now.Before(e.bridgeWaits()) || e.lacksCopies()) && !stuck:
		case !e.lacksCopies() && len(missing) == 0 && len(b.rollout.Errors(e.ID(), e.allHosts())) == 0:
			b.nextMovePhase(now, e)
			changed = true
		case stuck && e.Move.Live && !e.copying(): // its machines have gone on there
			b.nextMovePhase(now, e)
			changed = true
		case stuck:
			if err := b.rollBackMove(now, e); err != nil {
				return changed, err
			}
			changed = true
		}
	}
	return changed, nil
}

// nextMovePhase begins the next phase of a move.
func (b *Book) nextMovePhase(now time.Time, e *entry) {
	if e.setMovePhase(e.nextPhase(), now); e.Move.Phase == vnet.MoveLeaves {
		e.former = nil
	}
	e.parts, b.stale = nil, true
	b.touch(e)
}

// setMovePhase replaces the move: leases that were handed out share the old one.
func (e *entry) setMovePhase(phase vnet.MovePhase, now time.Time) {
	m := *e.Move
	m.Phase, m.Since = phase, now.Round(0).UTC()
	if m.Copied = nil; phase == vnet.MoveLeaves {
		m.Form = nil
	}
	e.Move = &m
}

// rollBackMove returns a moving lease to its former paths, and ends the leases
// that were promised room there.
func (b *Book) rollBackMove(now time.Time, e *entry) error {
	for _, other := range slices.Backward(slices.Clone(b.live)) {
		if other.State == vnet.Booked && b.awaitsMoves(other) && (other.Serial == e.Move.For || !b.fitsAfter(e.former, e.bookings)) {
			if err := b.evict(now, other, "the lease that was to make room for it could not be moved"); err != nil {
				return err
			}
		}
	}
	if err := b.calendar.Release(e.bookings...); err != nil {
		return fmt.Errorf("take back the move of %s: %w", e.ID(), err)
	}
	former := e.beforeMove()
	if err := b.bookFormer(e); err != nil {
		return fmt.Errorf("take back the move of %s: %w", e.ID(), err)
	}
	left := make(map[string][]vnet.VNI, len(e.Move.VNIs))
	for link, numbers := range e.VNIs {
		if !slices.Equal(former.VNIs[link], numbers) {
			left[link] = numbers
		}
	}
	b.markDirty(e)
	from := e.Mapping
	if e.Move.Form != nil {
		b.undoForm(now, e)
	}
	e.bookings, e.former, e.Mapping, e.VNIs, e.parts = e.former, nil, former.Mapping, former.VNIs, nil
	e.Move.VNIs = nil // in use again
	b.recordMove(now, e, from, left, vnet.MoveLeaves, 0)
	b.stale = true
	b.markDirty(e)
	b.touch(e)
	if !b.stillValid(e.Lease) {
		e.Lost = &vnet.Loss{Reasons: []string{"it could not go elsewhere with what its nodes keep"}}
		return b.markLost(e)
	}
	return nil
}

// fitsAfter says whether bookings fit once others are released.
func (b *Book) fitsAfter(bookings, without []calendar.Booking) bool {
	trial := b.calendar.Clone()
	return trial.Release(without...) == nil && b.fit(trial, bookings)
}

// fit says whether bookings of one lease, of which no two of an element overlap
// in time, fit beside what a calendar holds from now on.
func (g *resources) fit(cal *calendar.Calendar, bookings []calendar.Booking) bool {
	capacities, err := g.capacities()
	return err == nil && !slices.ContainsFunc(bookings, func(k calendar.Booking) bool {
		w, ahead := k.Window.Since(g.now)
		return ahead && cal.Residual(k.Key, capacities[k.Key], w) < k.Amount
	})
}

// evict ends a lease that has not begun, and leaves the reason with it.
func (b *Book) evict(now time.Time, e *entry, why string) error {
	if e.State != vnet.Booked {
		return errors.New("only a lease that has not begun can be evicted")
	}
	if err := b.end(now, e, why); err != nil {
		return err
	}
	e.Lost = &vnet.Loss{Reasons: []string{why}}
	return nil
}
