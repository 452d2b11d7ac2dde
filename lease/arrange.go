package lease

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// DefaultMoves is how many leases are moved at most to make room for one.
const DefaultMoves = 2

// mostCandidates bounds the leases among which moves are sought: those that
// hold most of what is missing.
const mostCandidates = 8

// mostReleased bounds the leases that are looked at for that, in order of
// admission: a refusal by a book of a hundred thousand must stay cheap.
const mostReleased = 512

// SwitchTime is the predicted interruption of a link that moves: both ends
// switch when their agents have read the same plan, which they are told of at
// once (docs/reservations.md has what was measured).
const SwitchTime = 500 * time.Millisecond

// move is a lease and where it would go, and when: one that has not begun may
// be postponed up to its latest start if its owner allows moves.
type move struct {
	lease  *entry
	to     vnet.Mapping
	window vnet.Window
}

// arrange looks for at most MostMoves leases whose moving lets a request in.
// Running ones take part if their owners allow it, with their nodes where held
// says; ones that are only booked take part and go anywhere they may. New
// paths fit beside all old ones, so that all moves can be made at once.
func (b *Book) arrange(req vnet.Request, window vnet.Window, held func(vnet.Lease, vnet.Substrate) vnet.Request) (decision, bool) {
	candidates := b.candidates(req, window)
	for size := 1; size <= min(b.MostMoves, len(candidates)); size++ {
		for _, set := range subsets(candidates, size) {
			if found, ok := b.exchange(req, window, set, held); ok {
				return found, true
			}
		}
	}
	return decision{}, false
}

// candidates are the leases that may move and hold some of what a request
// lacks, those that hold most first. None while others are moving: what these
// leave is not free yet.
func (b *Book) candidates(req vnet.Request, window vnet.Window) []*entry {
	if slices.ContainsFunc(b.near, (*entry).moving) {
		return nil
	}
	var free []*entry
	trial := b.calendar.Clone()
	for _, e := range b.live {
		if len(free) == mostReleased {
			break
		}
		allowed := e.State == vnet.Running && e.Request.Movable || e.State == vnet.Booked
		if b.MostMoves > 0 && allowed && e.Lost == nil && e.Move == nil && e.Window.Overlaps(window) && trial.Release(e.bookings...) == nil {
			free = append(free, e)
		}
	}
	if len(free) == 0 {
		return nil
	}
	mapping, err := b.embed(trial, req, window)
	if err != nil {
		return nil
	}
	over := b.over(req, window, mapping)
	holds := make(map[*entry]int64)
	for _, e := range free {
		for _, k := range e.bookings {
			if over[k.Key] && k.Window.Overlaps(window) {
				holds[e] += k.Amount
			}
		}
	}
	free = slices.DeleteFunc(free, func(e *entry) bool { return holds[e] == 0 })
	slices.SortStableFunc(free, func(x, y *entry) int { return cmp.Compare(holds[y], holds[x]) })
	return free[:min(len(free), mostCandidates)]
}

// over are the elements of which a mapping would take more than is left.
func (b *Book) over(req vnet.Request, window vnet.Window, mapping vnet.Mapping) map[string]bool {
	over := make(map[string]bool)
	bookings, err := b.bookings(req, window, mapping)
	if err != nil {
		return over
	}
	capacities, err := b.capacities()
	if err != nil {
		return over
	}
	for _, k := range bookings {
		if b.calendar.Residual(k.Key, capacities[k.Key], k.Window) < k.Amount {
			over[k.Key] = true
		}
	}
	return over
}

// exchange tries one set of leases: the request goes where they are now, and
// each of them to what then remains beside the old places of all.
func (b *Book) exchange(req vnet.Request, window vnet.Window, set []*entry, held func(vnet.Lease, vnet.Substrate) vnet.Request) (decision, bool) {
	without := b.calendar.Clone()
	for _, e := range set {
		if without.Release(e.bookings...) != nil {
			return decision{}, false
		}
	}
	mapping, err := b.embed(without, req, window)
	if err != nil {
		return decision{}, false
	}
	found := decision{window: window, mapping: mapping}
	with := b.calendar.Clone()
	if !b.books(with, req, window, mapping) {
		return decision{}, false
	}
	for _, e := range set {
		own := with.Clone()
		if own.Release(e.bookings...) != nil {
			return decision{}, false
		}
		m, ok := b.elsewhere(e, own, held)
		if !ok || !b.books(with, e.Request, m.window, m.to) {
			return decision{}, false
		}
		if m.window != e.Window || !reflect.DeepEqual(m.to, e.Mapping) {
			found.moves = append(found.moves, m)
		}
	}
	return found, true
}

// mostPostponed bounds the later starts that are tried for one lease.
const mostPostponed = 16

// elsewhere finds another place for a lease: at its time or, if it has not
// begun and its owner allows it, at the next start up to its latest.
func (b *Book) elsewhere(e *entry, cal *calendar.Calendar, held func(vnet.Lease, vnet.Substrate) vnet.Request) (move, bool) {
	request := e.Request
	if e.active() {
		request = held(e.Lease, b.working)
	}
	to, err := b.embed(cal, request, e.Window)
	if err == nil || e.State != vnet.Booked || !e.Request.Movable {
		return move{e, to, e.Window}, err == nil
	}
	tries := mostPostponed
	for _, start := range startsIn(cal, e.Window.Start, request) {
		if tries--; tries < 0 || start.After(e.Request.Before) {
			break
		}
		window := windowOf(start, startingAt(request, start))
		if to, err := b.embed(cal, request, window); err == nil {
			return move{e, to, window}, true
		}
	}
	return move{}, false
}

// books enters what a mapping takes into a calendar.
func (b *Book) books(cal *calendar.Calendar, r vnet.Request, w vnet.Window, m vnet.Mapping) bool {
	bookings, err := b.bookings(r, w, m)
	return err == nil && cal.Book(bookings...) == nil
}

// subsets lists the subsets of a size, in order.
func subsets(list []*entry, size int) [][]*entry {
	if size == 0 {
		return [][]*entry{nil}
	}
	var sets [][]*entry
	for i := range list {
		for _, rest := range subsets(list[i+1:], size-1) {
			sets = append(sets, append([]*entry{list[i]}, rest...))
		}
	}
	return sets
}

// makeRoom begins the moves for the lease that is entered next.
func (b *Book) makeRoom(now time.Time, moves []move) error {
	for _, m := range moves {
		if err := b.calendar.Release(m.lease.bookings...); err != nil {
			return err
		}
	}
	if len(moves) > 0 {
		defer b.reorder()
	}
	for _, m := range moves {
		if err := b.remap(now, m.lease, m, vnet.MovePrepares, b.serial+1); err != nil {
			return err
		}
	}
	return nil
}

// immovable says that a request would fit if nodes of running leases moved,
// which would end what runs in them and is not done.
func (b *Book) immovable(req vnet.Request, window vnet.Window) []string {
	anywhere := func(l vnet.Lease, _ vnet.Substrate) vnet.Request { return l.Request }
	if _, ok := b.arrange(req, window, anywhere); !ok {
		return nil
	}
	return []string{"it would fit if nodes of running networks went to other hosts, which would end what runs in them: only links of running networks are moved"}
}

// disturbances says what moves do to those who move.
func disturbances(moves []move) []vnet.Disturbance {
	var list []vnet.Disturbance
	for _, m := range moves {
		d := vnet.Disturbance{Lease: m.lease.ID(), Running: m.lease.active()}
		if !m.window.Start.Equal(m.lease.Window.Start) {
			d.Start = m.window.Start
		}
		for _, l := range m.lease.Request.Union().Links {
			if !sameWay(l, m.lease.Mapping, m.to) {
				d.Links = append(d.Links, l.Name)
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
			former.Lease = e.before()
			list = append(list, disturbances([]move{{&former, e.Mapping, e.Window}})...)
		}
	}
	return list
}
