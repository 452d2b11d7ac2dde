package lease

import (
	"reflect"
	"slices"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// allowsMoves says whether the leases that were to move are as they were, and
// have room where they were to go, and the request where they are.
func (b *Book) allowsMoves(d Decision) bool {
	without := b.calendar.Clone()
	to := make(map[*entry]move, len(d.moves))
	var set []*entry
	for _, m := range d.moves {
		e, ok := b.entries[m.lease.ID()]
		if !ok || !e.is(m.lease) || without.Release(e.bookings...) != nil {
			return false
		}
		set, to[e] = append(set, e), move{e, m.to, m.window}
	}
	bookings, err := b.bookings(d.request, d.window, d.mapping)
	if err != nil || !b.fit(without, bookings) || slices.ContainsFunc(b.active, (*entry).moving) {
		return false
	}
	_, err = b.relocate(b.calendar, d, set, func(e *entry, own *calendar.Calendar) (move, bool) {
		bookings, err := b.bookings(e.Held(), to[e].window, to[e].to)
		return to[e], err == nil && b.fit(own, bookings)
	})
	return err == nil
}

// is says whether a lease is where, when and what it was.
func (e *entry) is(was *entry) bool {
	return e.Serial == was.Serial && e.Revision == was.Revision && e.mayMove() && e.State == was.State && e.Window == was.Window && reflect.DeepEqual(e.Mapping, was.Mapping)
}

// makeRoom begins the moves for the lease that is entered next.
func (b *Book) makeRoom(now time.Time, moves []move) error {
	moves = slices.Clone(moves)
	for i, m := range moves {
		moves[i].lease = b.entries[m.lease.ID()] // a View has copies
	}
	for _, m := range moves {
		if err := b.calendar.Release(m.lease.bookings...); err != nil {
			return err
		}
	}
	if len(moves) > 0 {
		defer b.reorderOpenings()
	}
	for _, m := range moves {
		if err := b.remap(now, m.lease, m, vnet.MovePrepares, b.serial+1); err != nil {
			return err
		}
	}
	return nil
}

// disturbances says what moves do to the leases that move.
func disturbances(moves []move) []vnet.Disturbance {
	var list []vnet.Disturbance
	for _, m := range moves {
		d := vnet.Disturbance{Lease: m.lease.ID(), Running: m.lease.onHosts()}
		if !m.window.Start.Equal(m.lease.Window.Start) {
			d.Start = m.window.Start
		}
		union := m.lease.Request.Union()
		d.Nodes = vnet.Relocations(union, m.lease.Mapping, m.to)
		for _, l := range union.Links {
			if !sameRoute(l, m.lease.Mapping, m.to) {
				name := l.Name
				if l.Chain != "" {
					name = l.Title()
				}
				d.Links = append(d.Links, name)
			}
		}
		if d.Moved = len(d.Links); d.Running && d.Moved > 0 {
			d.Interruption = SwitchTime
		}
		list = append(list, d)
	}
	return list
}

// Moves says what is done to others to make room for a lease.
func (b *Book) Moves(serial uint64) []vnet.Disturbance {
	var list []vnet.Disturbance
	for _, e := range b.live {
		if e.moving() && e.Move.For == serial {
			former := *e
			former.Lease = e.beforeMove()
			list = append(list, disturbances([]move{{&former, e.Mapping, e.Window}})...)
		}
	}
	return list
}
