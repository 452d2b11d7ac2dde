package lease

import (
	"cmp"
	"slices"

	"sublet/vnet"
)

// phase is where a lease is in its life, as the book sees it: what is booked
// for it, whether its hosts are to have it, whether Tick looks at it. Tenants see
// vnet.State instead, which also says what the hosts report.
//
// It follows from what the store has of the lease (entry.current), so a restart
// leaves every lease where it was.
type phase int

const (
	phaseNone     phase = iota // not in the book
	phasePending               // its window has not opened
	phaseOpening               // its window has opened; it begins once no move of another lease uses what it was promised
	phaseDeployed              // on its hosts
	phaseMoving                // on its hosts, with its former paths beside the new ones
	phaseLost                  // something that it uses is down; its place stays booked for it
	phaseUnplaced              // something that it uses is down; nothing is booked for it
	phaseDraining              // ended; hosts may still have something of it
	phaseHistory               // ended, and no host has anything of it
)

// phases is the life of a lease as a table. Tests hold each column and each
// transition against random lives.
//
//	admission --> pending --> opening --> deployed <--> moving
//	                 |           |           |            |
//	                 +-----------+-----+-----+------------+---- what it uses is down, works again
//	                                   v
//	                            lost <--> unplaced
//
//	any of them, released or over --> draining --> history
//
// A move that has switched is in phaseDeployed, phaseLost or phaseUnplaced
// with a vnet.Move that says what hosts have still to remove.
var phases = [...]struct {
	name    string
	states  []vnet.State // that its lease can have
	live    bool         // counts against quotas; in Book.live
	active  bool         // looked at by every Tick; in Book.active
	booked  bool         // the calendar holds what it uses
	onHosts bool         // its hosts are to have it, once its State is not Booked
	next    []phase
}{
	phaseNone: {name: "none", next: []phase{phasePending}},
	phasePending: {
		name: "pending", states: []vnet.State{vnet.Booked}, live: true, booked: true,
		next: []phase{phaseOpening, phaseLost, phaseUnplaced, phaseDraining},
	},
	phaseOpening: {
		name: "opening", states: []vnet.State{vnet.Booked}, live: true, active: true, booked: true,
		next: []phase{phaseDeployed, phaseLost, phaseUnplaced, phaseDraining},
	},
	phaseDeployed: {
		name: "deployed", states: []vnet.State{vnet.Deploying, vnet.Running, vnet.Degraded, vnet.Paused, vnet.Failed}, live: true, active: true, booked: true, onHosts: true,
		next: []phase{phaseMoving, phaseLost, phaseUnplaced, phaseDraining},
	},
	phaseMoving: {
		name: "moving", states: []vnet.State{vnet.Deploying, vnet.Running, vnet.Degraded, vnet.Paused, vnet.Failed}, live: true, active: true, booked: true, onHosts: true,
		next: []phase{phaseDeployed, phaseLost, phaseUnplaced, phaseDraining},
	},
	phaseLost: {
		name: "lost", states: []vnet.State{vnet.Booked, vnet.Failed}, live: true, active: true, booked: true, onHosts: true,
		next: []phase{phasePending, phaseOpening, phaseDeployed, phaseUnplaced, phaseDraining},
	},
	phaseUnplaced: {
		name: "unplaced", states: []vnet.State{vnet.Booked, vnet.Failed}, live: true, active: true,
		next: []phase{phasePending, phaseOpening, phaseDeployed, phaseLost, phaseDraining},
	},
	phaseDraining: {name: "draining", states: []vnet.State{vnet.Ended}, next: []phase{phaseHistory}},
	phaseHistory:  {name: "history", states: []vnet.State{vnet.Ended}},
}

func (p phase) String() string { return phases[p].name }

// current derives the phase from the lease. An ended one keeps its addresses
// and tunnel identifiers until every host has removed it, because a host that
// is out of reach goes on sending with them.
func (e *entry) current() phase {
	switch {
	case e.State == vnet.Ended && len(e.Addresses) > 0:
		return phaseDraining
	case e.State == vnet.Ended:
		return phaseHistory
	case e.Lost != nil && e.Lost.Booked:
		return phaseLost
	case e.Lost != nil:
		return phaseUnplaced
	case e.State == vnet.Booked && !e.opened:
		return phasePending
	case e.State == vnet.Booked:
		return phaseOpening
	case e.Move != nil && e.Move.Phase != vnet.MoveLeaves:
		return phaseMoving
	}
	return phaseDeployed
}

// onHosts says whether the lease's hosts are to have it now.
func (e *entry) onHosts() bool { return e.State != vnet.Booked && phases[e.current()].onHosts }

// moving says whether a lease still uses its former paths.
func (e *entry) moving() bool { return e.current() == phaseMoving }

// unplaced says that nothing is booked for a lease.
func (e *entry) unplaced() bool { return e.current() == phaseUnplaced }

// mayMove says whether a lease may be moved to make room for others: a running one if its
// owner allows it, one that has not begun always.
func (e *entry) mayMove() bool {
	switch e.current() {
	case phasePending, phaseOpening:
		return true
	case phaseDeployed:
		return e.Move == nil && e.State.Up() && e.Request.Movable
	}
	return false
}

// track puts a lease into the lists that its phase belongs to. Every change of
// a lease comes here: see touch.
func (b *Book) track(e *entry) {
	from, to := e.listed, e.current()
	if from == to {
		return
	}
	e.listed = to
	if b.onTransition != nil {
		b.onTransition(from, to)
	}
	if was, is := phases[from].live, phases[to].live; was != is {
		b.live = listed(b.live, e, is)
		b.countFor(e, is)
	}
	if was, is := phases[from].active, phases[to].active; was != is {
		b.active = listed(b.active, e, is)
	}
	if from == phaseDraining || to == phaseDraining {
		b.draining = listed(b.draining, e, to == phaseDraining)
	}
	if to == phaseHistory {
		b.keepHistory(e)
	}
}

// listed enters a lease into a list by Serial, or takes it out.
func listed(list []*entry, e *entry, in bool) []*entry {
	i, found := slices.BinarySearchFunc(list, e, func(x, y *entry) int { return cmp.Compare(x.Serial, y.Serial) })
	switch {
	case in:
		return slices.Insert(list, i, e)
	case found:
		return slices.Delete(list, i, i+1)
	}
	return list
}

// countFor enters a lease into those of its tenant that are live, or takes it out.
func (b *Book) countFor(e *entry, live bool) {
	tenant := e.Request.Tenant
	if live {
		if b.byTenant[tenant] == nil {
			b.byTenant[tenant] = make(map[*entry]bool)
		}
		b.byTenant[tenant][e] = true
		return
	}
	if delete(b.byTenant[tenant], e); len(b.byTenant[tenant]) == 0 {
		delete(b.byTenant, tenant)
	}
}
