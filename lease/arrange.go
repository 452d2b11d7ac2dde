package lease

import (
	"cmp"
	"errors"
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

// SwitchTime is the predicted interruption of a link that moves: each end takes what
// comes by either path before the other one switches (docs/reservations.md has what
// was measured).
const SwitchTime = 20 * time.Millisecond

// holding lists the requests by which a running lease is embedded anew to make room for
// others, the one that moves least first.
type holding func(vnet.Lease, vnet.Substrate) []vnet.Request

// inPlace keeps all nodes where they are, then all but the routers and switches that can
// be there twice meanwhile.
func inPlace(l vnet.Lease, working vnet.Substrate) []vnet.Request {
	list, can := []vnet.Request{keepingNodes(l, working)}, doubles(l.Request)
	for _, n := range l.Request.Union().Placed() {
		if can[n.Name] {
			return append(list, keepingBut(l, working, can))
		}
	}
	return list
}

// move is a lease and where it would go, and when: one that has not begun may
// be postponed up to its latest start if its owner allows moves.
type move struct {
	lease  *entry
	to     vnet.Mapping
	window vnet.Window
}

// arrange looks for at most MostMoves leases whose moving lets a request in.
// Running ones take part if their owners allow it, with what held keeps where it
// is; ones that are only booked take part and go anywhere they may. New
// paths fit beside all old ones, so that all moves can be made at once.
func (v *View) arrange(req vnet.Request, window vnet.Window, held holding) (Decision, bool) {
	candidates := v.candidates(req, window)
	for size := 1; size <= min(v.mostMoves, len(candidates)); size++ {
		for _, set := range subsets(candidates, size) {
			if v.effort.Over() {
				return Decision{}, false
			}
			if found, ok := v.tryMoves(req, window, set, held); ok {
				return found, true
			}
		}
	}
	return Decision{}, false
}

// candidates are the leases that may move and hold some of what a request
// lacks, those that hold most first.
func (v *View) candidates(req vnet.Request, window vnet.Window) []*entry {
	if v.mostMoves == 0 || v.effort.Over() {
		return nil
	}
	trial := v.calendar.Clone()
	free := slices.DeleteFunc(v.movable(window), func(e *entry) bool { return trial.Release(e.bookings...) != nil })
	if len(free) == 0 {
		return nil
	}
	mapping, err := v.embed(trial, req, window)
	if err != nil {
		return nil
	}
	over := v.over(req, window, mapping)
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
func (v *View) over(req vnet.Request, window vnet.Window, mapping vnet.Mapping) map[string]bool {
	over := make(map[string]bool)
	bookings, err := v.bookings(req, window, mapping)
	if err != nil {
		return over
	}
	capacities, err := v.capacities()
	if err != nil {
		return over
	}
	for _, k := range bookings {
		if v.calendar.Residual(k.Key, capacities[k.Key], k.Window) < k.Amount {
			over[k.Key] = true
		}
	}
	return over
}

// tryMoves tries one set of leases: the request goes where they are now, and
// each of them to what then remains beside the old places of all.
func (v *View) tryMoves(req vnet.Request, window vnet.Window, set []*entry, held holding) (Decision, bool) {
	without := v.calendar.Clone()
	for _, e := range set {
		if without.Release(e.bookings...) != nil {
			return Decision{}, false
		}
	}
	mapping, err := v.embed(without, req, window)
	if err != nil {
		return Decision{}, false
	}
	found := v.decision(req, window, mapping)
	found.moves, err = v.relocate(v.calendar, found, set, func(e *entry, own *calendar.Calendar) (move, bool) {
		return v.findMove(e, own, held)
	})
	return found, err == nil
}

// errNoRelocation says that a set of leases cannot make room.
var errNoRelocation = errors.New("no relocation makes room")

// relocate lists where a set of leases go to let a request in: each to what
// place finds beside the request and the old places of the others.
func (g *resources) relocate(cal *calendar.Calendar, d Decision, set []*entry, place func(*entry, *calendar.Calendar) (move, bool)) (moves []move, err error) {
	with := cal.Clone()
	if !g.bookOn(with, d.request, d.window, d.mapping) {
		return nil, errNoRelocation
	}
	for _, e := range set {
		own := with.Clone()
		if own.Release(e.bookings...) != nil {
			return nil, errNoRelocation
		}
		m, ok := place(e, own)
		if !ok || !g.bookOn(with, e.Request, m.window, m.to) {
			return nil, errNoRelocation
		}
		if m.window != e.Window || !reflect.DeepEqual(m.to, e.Mapping) {
			moves = append(moves, m)
		}
	}
	return moves, nil
}

// mostPostponed bounds the later starts that are tried for one lease.
const mostPostponed = 16

// findMove finds another place for a lease: at its time or, if it has not
// begun and its owner allows it, at the next start up to its latest.
func (v *View) findMove(e *entry, cal *calendar.Calendar, held holding) (move, bool) {
	request := e.Request
	if e.onHosts() {
		for _, request := range held(e.Lease, v.working) {
			if to, err := v.embedAnew(cal, request, e.Window, e.Mapping); err == nil {
				return move{e, to, e.Window}, true
			}
		}
		return move{}, false
	}
	to, err := v.embedAnew(cal, request, e.Window, e.Mapping)
	if err == nil || e.State != vnet.Booked || !e.Request.Movable {
		return move{e, to, e.Window}, err == nil
	}
	tries := mostPostponed
	for _, start := range startsIn(cal, e.Window.Start, request) {
		if tries--; tries < 0 || start.After(e.Request.Before) {
			break
		}
		window := windowOf(start, startingAt(request, start))
		if to, err := v.embedAnew(cal, request, window, e.Mapping); err == nil {
			return move{e, to, window}, true
		}
	}
	return move{}, false
}

// bookOn enters what a mapping takes into a calendar.
func (g *resources) bookOn(cal *calendar.Calendar, r vnet.Request, w vnet.Window, m vnet.Mapping) bool {
	bookings, err := g.bookings(r, w, m)
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

// immovable says that a request would fit if nodes of running leases moved,
// which would end what runs in them and is not done.
func (v *View) immovable(req vnet.Request, window vnet.Window) []string {
	defer v.effort.Part(partOfEach)()
	anywhere := func(l vnet.Lease, _ vnet.Substrate) []vnet.Request { return []vnet.Request{l.Request} }
	if _, ok := v.arrange(req, window, anywhere); !ok {
		return nil
	}
	return []string{"it would fit if nodes of running networks went to other hosts, which would end what runs in them: only links, switches and routers of running networks are moved"}
}
