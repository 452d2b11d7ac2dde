// Package rollout hands target plans over to hosts in an order in which no
// link is over-booked in between, and knows from their reports what each of
// them has. It is a state machine: targets, reports and the time go in, plans
// come out. It does no I/O and reads no clock; its caller holds a lock.
//
//	SetTarget --> publish what shrinks --> Report of every live host --> Step: publish what grows
package rollout

import (
	"maps"
	"slices"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// DefaultLiveness is how long a host may be silent before it is presumed
// dead: six of the agents' heartbeats.
const DefaultLiveness = 30 * time.Second

// Rollout publishes plans in two steps across hosts: everywhere what shrinks
// and goes, then, when every host has done that, what grows and comes. So no
// link is over-booked in between, in whatever order hosts act. A host presumed
// dead blocks nobody; what it still has is taken back when it returns.
type Rollout struct {
	liveness time.Duration
	revision uint64 // the last one given out
	hosts    map[vnet.HostID]*hostState
	changed  map[vnet.HostID]bool  // published or forgotten since Saved
	pending  map[vnet.HostID]bool  // hosts that are not at their target; see markPending
	down     map[vnet.HostID]bool  // known to be dead
	together map[vnet.LeaseID]bool // see Together

	store, term string      // of the plans: see Begin
	terms       []plan.Term // in which any were published
}

// New returns a rollout without hosts.
func New(liveness time.Duration) *Rollout {
	return &Rollout{liveness: liveness, hosts: make(map[vnet.HostID]*hostState), changed: make(map[vnet.HostID]bool), pending: make(map[vnet.HostID]bool), together: make(map[vnet.LeaseID]bool)}
}

// SetLiveness sets how long a host may be silent before it is presumed dead.
func (r *Rollout) SetLiveness(d time.Duration) { r.liveness = d }

// SetDown replaces the set of hosts that are known to be dead.
func (r *Rollout) SetDown(down map[vnet.HostID]bool) { r.down = down }

// Restore goes on from plans that were published before, some of which may be prepared.
// What hosts did with them is unknown until they report.
func (r *Rollout) Restore(now time.Time, l Lineage, plans map[vnet.HostID]plan.Host, prepared map[vnet.HostID]Prepared) {
	r.revision = max(r.revision, l.Revision)
	r.store, r.terms = l.Store, l.Terms
	if len(r.terms) == 0 && r.revision > 0 { // a former version wrote it
		r.terms = []plan.Term{{}}
	}
	for name, p := range plans {
		r.revision = max(r.revision, p.Revision)
		h := prepared[name].of
		if h == nil {
			h = Prepare(p).of
		}
		h.seen, r.hosts[name] = now, h
		r.markPending(name)
	}
}

// markPending updates the set of hosts that Step and Blockers have to look at:
// few of thousands.
func (r *Rollout) markPending(name vnet.HostID) {
	if h := r.hosts[name]; h != nil && (h.removed || h.grows || h.half || h.held != nil || h.done < h.shrunk) {
		r.pending[name] = true
	} else {
		delete(r.pending, name)
	}
}

// Expect says that hosts may still have something of a lease of which their
// plans say nothing any more.
func (r *Rollout) Expect(id vnet.LeaseID, hosts []vnet.HostID) {
	for _, name := range hosts {
		if h := r.hosts[name]; h != nil {
			if _, ok := h.parts[id]; !ok {
				h.parts[id] = part{since: h.plan.Revision, gone: true}
			}
		}
	}
}

// SetTarget sets what a host shall have in the end and publishes what shrinks.
func (r *Rollout) SetTarget(now time.Time, want plan.Host) {
	h := r.hosts[want.Host]
	if h == nil {
		// An empty plan, so that what an agent has from an earlier life goes.
		h = newHostState(now, want.Host)
		r.hosts[want.Host] = h
		r.publish(want.Host, h.plan, false)
	}
	defer r.markPending(want.Host)
	h.removed = false
	if same(want, h.target) {
		return
	}
	h.target = want
	if meet := plan.Meet(h.plan, want); !same(meet, h.plan) {
		r.publish(want.Host, meet, true)
		r.setInstant(now, h)
	}
	h.updateLacks()
}

// Differs says whether a target is another one than a host has.
func (r *Rollout) Differs(want plan.Host) bool {
	h := r.hosts[want.Host]
	return h == nil || !same(want, h.target)
}

// Retain empties the hosts that are not among names and then forgets them.
func (r *Rollout) Retain(now time.Time, names []vnet.HostID) {
	kept := make(map[vnet.HostID]bool, len(names))
	for _, name := range names {
		kept[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(r.hosts)) {
		if !kept[name] {
			r.SetTarget(now, plan.Host{Host: name})
			r.hosts[name].removed = true
			r.markPending(name)
		}
	}
}

// Step publishes what grows if every live host has done what shrinks, and
// forgets hosts that have left.
func (r *Rollout) Step(now time.Time) {
	for _, name := range r.pendingHosts() {
		if h := r.hosts[name]; h.removed && !h.grows && (h.done >= h.shrunk || r.dead(h, now)) {
			delete(r.hosts, name)
			r.changed[name] = true
			r.markPending(name)
		}
	}
	if len(r.Blockers(now)) > 0 {
		return
	}
	for _, name := range r.pendingHosts() {
		if h := r.hosts[name]; h.grows || h.half {
			h.half = false
			r.publish(name, h.target, false)
			r.setInstant(now, h)
			h.updateLacks()
			r.markPending(name)
		}
	}
	clear(r.together)
}

// Report takes in what an agent says; a report of an unknown host is ignored.
// False: it says nothing that was not known.
func (r *Rollout) Report(now time.Time, told report.Report) (news bool) {
	h := r.hosts[told.Host]
	if h == nil {
		return false
	}
	dead, done, parts, before := r.dead(h, now), h.done, len(h.parts), h.problems
	h.seen, h.heard = now, true
	if h.held = r.keeps(told); h.held != nil {
		h.done = 0
	} else {
		h.done, h.adopt = max(told.Revision, told.Tried), nil
	}
	h.problems = problemsOf(told, h.held)
	if told.Plan == nil && h.done > h.plan.Revision { // an agent of a former version
		// Nobody published that: the store is older than what the agent has
		// seen. Numbers beyond it keep acknowledgements unambiguous.
		r.revision = max(r.revision, h.done)
		r.publish(told.Host, h.plan, true)
	}
	h.forgetRemoved()
	r.markPending(told.Host)
	return dead || h.done != done || len(h.parts) != parts || !h.problems.equal(before)
}

// Seen says that a host is alive though it has nothing to report.
func (r *Rollout) Seen(now time.Time, host vnet.HostID) {
	if h := r.hosts[host]; h != nil {
		h.seen, h.heard = now, true
	}
}

// Changed are the plans that were published since Saved, by host, and the
// hosts that were forgotten.
func (r *Rollout) Changed() (published []plan.Host, forgotten []vnet.HostID) {
	for _, name := range slices.Sorted(maps.Keys(r.changed)) {
		if h, ok := r.hosts[name]; ok {
			published = append(published, h.plan)
		} else {
			forgotten = append(forgotten, name)
		}
	}
	return published, forgotten
}

// Saved says that the store has everything that Changed would return.
func (r *Rollout) Saved() { clear(r.changed) }

// publish gives out a plan, signed.
func (r *Rollout) publish(name vnet.HostID, p plan.Host, shrinks bool) {
	r.revision++
	r.noteTerm()
	h := r.hosts[name]
	p.Revision, p.Store, p.Term, p.Adopt, p.Half = r.revision, r.store, r.term, h.adopt, h.half
	h.publish(p, shrinks)
	r.changed[name] = true
	r.markPending(name)
}

// pendingHosts are the hosts that are not at their target, sorted.
func (r *Rollout) pendingHosts() []vnet.HostID { return slices.Sorted(maps.Keys(r.pending)) }
