package lease

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/vnet"
)

// ErrNoElement is wrapped when a host or link is not in the substrate.
var ErrNoElement = errors.New("not in the substrate")

// SetHostDown says that a host is out of order, or works again. Leases that it
// carried are embedded anew, most constrained first, if that keeps all that
// they asked for; the others are Lost until they can be carried again. Nodes on
// other hosts stay where they are.
func (b *Book) SetHostDown(now time.Time, name vnet.HostID, down bool) error {
	hosts := slices.Clone(b.sub.Hosts)
	for i := range hosts {
		if hosts[i].Name == name {
			return b.setDown(now, &hosts[i].Down, down, func() { b.sub.Hosts = hosts })
		}
	}
	return fmt.Errorf("host %q: %w", name, ErrNoElement)
}

// SetLinkDown is SetHostDown for a link.
func (b *Book) SetLinkDown(now time.Time, name string, down bool) error {
	links := slices.Clone(b.sub.Links)
	for i := range links {
		if links[i].Name == name {
			return b.setDown(now, &links[i].Down, down, func() { b.sub.Links = links })
		}
	}
	return fmt.Errorf("link %q: %w", name, ErrNoElement)
}

// setDown sets the state of an element in a copy of its list, which replace
// makes the book's.
func (b *Book) setDown(now time.Time, element *bool, down bool, replace func()) error {
	if *element == down {
		return b.Tick(now)
	}
	*element = down
	replace()
	return b.failover(now)
}

// failover embeds anew what uses an element that is down, and what has been lost
// before.
func (b *Book) failover(now time.Time) error {
	if err := b.Tick(now); err != nil {
		return err
	}
	b.setWorking()
	b.changed.substrate = true
	b.rollout.SetDown(downHosts(b.sub))
	var displaced []*entry
	for _, e := range b.live {
		if b.displaced(e) {
			displaced = append(displaced, e)
		}
	}
	if err := b.recover(now, displaced); err != nil {
		return err
	}
	return b.Tick(now)
}

// downHosts are the hosts that are known to be dead.
func downHosts(sub vnet.Substrate) map[vnet.HostID]bool {
	down := make(map[vnet.HostID]bool)
	for _, h := range sub.Hosts {
		down[h.Name] = h.Down
	}
	return down
}

// stillValid says whether everything a lease is mapped to works.
func (b *Book) stillValid(l vnet.Lease) bool {
	working := b.index(b.working)
	for _, host := range l.Mapping.Nodes {
		if _, ok := working.HostOf(string(host)); !ok {
			return false
		}
	}
	for _, link := range l.Request.Union().Links {
		for _, path := range l.Mapping.Paths(link.Name) {
			if _, err := working.Walk(l.Mapping.Nodes[link.Ends[0]], path.Path); err != nil {
				return false
			}
		}
	}
	return true
}

// recover embeds displaced leases anew, the most constrained first. What all of
// them had is free for the search. A lease that finds no place keeps its former
// one booked, for when it works again, unless one that was recovered needs it.
func (b *Book) recover(now time.Time, displaced []*entry) error {
	b.byConstraint(displaced)
	for _, e := range displaced {
		if err := b.abandon(now, e); err != nil {
			return fmt.Errorf("recover %s: %w", e.ID(), err)
		}
		if err := b.calendar.Release(e.bookings...); err != nil {
			return fmt.Errorf("recover %s: %w", e.ID(), err)
		}
	}
	var lost []*entry
	for _, e := range displaced {
		why, err := b.reembed(now, e)
		if err != nil {
			return fmt.Errorf("recover %s: %w", e.ID(), err)
		}
		if why != nil {
			e.Lost = &vnet.Loss{Reasons: why}
			lost = append(lost, e)
		}
	}
	for _, e := range lost {
		if err := b.markLost(e); err != nil {
			return err
		}
	}
	return nil
}

// reembed gives a lease its old place if that is valid and free, else another;
// or says why there is none.
func (b *Book) reembed(now time.Time, e *entry) (why []string, err error) {
	if b.stillValid(e.Lease) {
		// Without its way out, exit or place to join it has no bookings there.
		if bookings, err := b.bookings(e.Held(), e.Window, e.Mapping); err == nil && b.fit(b.withFormer(), bookings) {
			b.clearLoss(e, bookings)
			return nil, b.calendar.Book(bookings...)
		}
	}
	mapping, err := b.embedDisplaced(e)
	var infeasible *embed.Infeasible
	switch {
	case errors.As(err, &infeasible):
		return b.whatIsDown(infeasible.Reasons), nil
	case err != nil:
		return nil, err
	}
	phase := vnet.MoveLeaves
	if e.onHosts() && len(carried(e.Request, e.Mapping, mapping)) > 0 {
		phase = vnet.MoveCopies
	}
	b.clearLoss(e, nil)
	return nil, b.remap(now, e, move{e, mapping, e.Window}, phase, 0)
}

// embedDisplaced finds another place for a lease: with the nodes that work where they
// are, or else with those elsewhere, too, that may be stopped and started anew.
func (b *Book) embedDisplaced(e *entry) (vnet.Mapping, error) {
	if !e.onHosts() {
		return b.embedAnew(b.withFormer(), e.Held(), e.Window, e.Mapping)
	}
	mapping, err := b.embedAnew(b.withFormer(), e.Paused.Of(keepingNodes(e.Lease, b.working)), e.Window, e.Mapping)
	moves := make(map[string]bool)
	for _, n := range e.Request.Union().Nodes {
		_, works := b.index(b.working).HostOf(string(e.Mapping.Nodes[n.Name]))
		if n.MayMove() && (works || !n.Keeps()) { // files can be had from hosts that work
			moves[n.Name] = true
		}
	}
	if len(moves) == 0 || !errors.As(err, new(*embed.Infeasible)) {
		return mapping, err
	}
	return b.embedAnew(b.withFormer(), e.Paused.Of(keepingBut(e.Lease, b.working, moves)), e.Window, e.Mapping)
}

// clearLoss takes back that a lease is lost.
func (b *Book) clearLoss(e *entry, bookings []calendar.Booking) {
	if e.unplaced() {
		b.stale = true
	}
	e.Lost, e.bookings, e.parts = nil, bookings, nil
	if e.State == vnet.Booked {
		e.Message = ""
	}
	b.stale = true
	b.markDirty(e)
	b.touch(e)
}

// withFormer is the calendar with what moving leases still use besides.
func (b *Book) withFormer() *calendar.Calendar {
	if !slices.ContainsFunc(b.active, (*entry).moving) {
		return b.calendar
	}
	trial := b.calendar.Clone()
	for _, e := range b.active {
		if e.moving() {
			trial.Book(e.former...) // booked before, so well formed
		}
	}
	return trial
}

// keepingNodes is the request with the nodes kept where they are, apart from those
// whose hosts do not work. What keeps its files waits for the host that has them.
func keepingNodes(l vnet.Lease, working vnet.Substrate) vnet.Request {
	return keepingBut(l, working, nil)
}

// keepingBut is keepingNodes without some that may move.
func keepingBut(l vnet.Lease, working vnet.Substrate, moves map[string]bool) vnet.Request {
	r, keeps := rewrite(l.Request), keepers(l.Request)
	eachPlace(&r, func(name string, site *string, host *vnet.HostID) {
		if moves[name] {
			return
		}
		if _, ok := working.HostOf(string(l.Mapping.Nodes[name])); ok || keeps[name] {
			*site, *host = "", l.Mapping.Nodes[name]
		}
	})
	return r
}

// keepers are the nodes that keep what they write.
func keepers(r vnet.Request) map[string]bool {
	names := make(map[string]bool)
	for _, node := range r.Union().All() {
		if node.Keeps() {
			names[node.Name] = true
		}
	}
	return names
}

// markLost books for a lost lease what it had, if there is room: lost, else
// unplaced.
func (b *Book) markLost(e *entry) error {
	defer b.touch(e)
	b.markDirty(e)
	e.parts, b.stale = nil, true // it may have had nothing until now
	bookings, err := b.bookings(e.Held(), e.Window, e.Mapping)
	if err != nil {
		return err
	}
	if !b.fit(b.withFormer(), bookings) {
		e.bookings, e.Rates = nil, nil
		return nil
	}
	e.Lost.Booked, e.bookings = true, bookings
	return b.calendar.Book(bookings...)
}
