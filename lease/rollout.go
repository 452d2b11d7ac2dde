package lease

import (
	"maps"
	"slices"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// DefaultLiveness is how long a host may be silent before it is presumed
// dead: six of the agents' heartbeats.
const DefaultLiveness = 30 * time.Second

// Rollout hands target plans over in order across hosts: everywhere what
// shrinks and goes, then, when every host has done that, what grows and comes.
// So no link is over-booked in between, in whatever order hosts act. A host
// presumed dead holds nobody up; what it still has is taken back when it
// returns. It is a state machine: targets, reports and the time go in, plans
// come out.
type Rollout struct {
	liveness time.Duration
	revision uint64 // the last one given out
	hosts    map[vnet.HostID]*handed
	changed  map[vnet.HostID]bool // published or dropped since the last drain
	open     map[vnet.HostID]bool // hosts that are not what they shall be; see mind
	down     map[vnet.HostID]bool // known to be dead

	store, term string      // whose plans these are: see Book.Begin
	terms       []plan.Term // in which any were published
}

// handed is what one host was given and what it did with it.
type handed struct {
	plan   plan.Host // as published
	target plan.Host
	grows  bool                  // target is more than plan
	lacks  map[vnet.LeaseID]bool // leases of which target differs from plan
	parts  map[vnet.LeaseID]part // leases that are on the host, or may still be
	shrunk uint64                // the last revision that took something away
	done   uint64                // the last revision the host has gone through
	seen   time.Time             // last report, or since when one is awaited
	heard  bool                  // there was a sign of life
	left   bool                  // the host is not in the substrate any more
	held   *plan.Held            // what its agent keeps it at instead; nil: it follows
	adopt  *plan.Origin          // what it may have been kept at; nil: nothing but what it was given
	half   bool                  // of its plan only what shrinks is to be done
	problems
}

// part is a lease's part of one host's plan.
type part struct {
	since uint64 // revision from which the plan has had this form of it
	gone  bool   // the form is: nothing
}

// NewRollout returns one that knows no host.
func NewRollout(liveness time.Duration) *Rollout {
	return &Rollout{liveness: liveness, hosts: make(map[vnet.HostID]*handed), changed: make(map[vnet.HostID]bool), open: make(map[vnet.HostID]bool)}
}

// Restore goes on from plans that were published before. What hosts did with
// them is unknown until they report.
func (r *Rollout) Restore(now time.Time, counters Counters, plans map[vnet.HostID]plan.Host) {
	r.revision = max(r.revision, counters.Revision)
	r.store, r.terms = counters.Store, counters.Terms
	if len(r.terms) == 0 && r.revision > 0 { // a former version wrote it
		r.terms = []plan.Term{{}}
	}
	for name, p := range plans {
		r.revision = max(r.revision, p.Revision)
		h := newHanded(now, name)
		h.publish(p, true)
		h.adopt, h.half = p.Adopt, p.Half
		r.hosts[name] = h
		r.mind(name)
	}
}

// mind keeps the list of hosts that Step and Blockers have to look at: of
// thousands, few.
func (r *Rollout) mind(name vnet.HostID) {
	if h := r.hosts[name]; h != nil && (h.left || h.grows || h.half || h.held != nil || h.done < h.shrunk) {
		r.open[name] = true
	} else {
		delete(r.open, name)
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

// Aim sets what a host shall have in the end and publishes what shrinks.
func (r *Rollout) Aim(now time.Time, want plan.Host) {
	h := r.hosts[want.Host]
	if h == nil {
		// An empty plan, so that what an agent has from an earlier life goes.
		h = newHanded(now, want.Host)
		r.hosts[want.Host] = h
		r.publish(want.Host, h.plan, false)
	}
	defer r.mind(want.Host)
	h.left = false
	if same(want, h.target) {
		return
	}
	h.target = want
	if meet := plan.Meet(h.plan, want); !same(meet, h.plan) {
		r.publish(want.Host, meet, true)
	}
	h.compare()
}

// Keep empties the hosts that are not among names and then forgets them.
func (r *Rollout) Keep(now time.Time, names []vnet.HostID) {
	kept := make(map[vnet.HostID]bool, len(names))
	for _, name := range names {
		kept[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(r.hosts)) {
		if !kept[name] {
			r.Aim(now, plan.Host{Host: name})
			r.hosts[name].left = true
			r.mind(name)
		}
	}
}

// Step publishes what grows if every live host has done what shrinks, and
// forgets hosts that have left.
func (r *Rollout) Step(now time.Time) {
	for _, name := range r.unfinished() {
		if h := r.hosts[name]; h.left && !h.grows && (h.done >= h.shrunk || r.dead(h, now)) {
			delete(r.hosts, name)
			r.changed[name] = true
			r.mind(name)
		}
	}
	if len(r.Blockers(now)) > 0 {
		return
	}
	for _, name := range r.unfinished() {
		if h := r.hosts[name]; h.grows || h.half {
			h.half = false
			r.publish(name, h.target, false)
			h.compare()
			r.mind(name)
		}
	}
}

// Report takes in what an agent says; a report of an unknown host is ignored.
// False: it says nothing that was not known.
func (r *Rollout) Report(now time.Time, report plan.Report) (news bool) {
	h := r.hosts[report.Host]
	if h == nil {
		return false
	}
	dead, done, parts, before := r.dead(h, now), h.done, len(h.parts), h.problems
	h.seen, h.heard = now, true
	if h.held = r.keeps(report); h.held != nil {
		h.done = 0
	} else {
		h.done, h.adopt = max(report.Revision, report.Tried), nil
	}
	h.problems = problemsOf(report, h.held)
	if report.Plan == nil && h.done > h.plan.Revision { // an agent of a former version
		// Nobody published that: the store is older than what the agent has
		// seen. Numbers beyond it keep acknowledgements unambiguous.
		r.revision = max(r.revision, h.done)
		r.publish(report.Host, h.plan, true)
	}
	h.settle()
	r.mind(report.Host)
	return dead || h.done != done || len(h.parts) != parts || !h.problems.equal(before)
}

// Seen says that a host is alive though it has nothing to report.
func (r *Rollout) Seen(now time.Time, host vnet.HostID) {
	if h := r.hosts[host]; h != nil {
		h.seen, h.heard = now, true
	}
}

// Blockers are the live hosts that have not yet done what shrinks, sorted.
// Those that wait to be adopted are among them: nobody knows what they carry.
// Having gone through a plan counts, with errors too: one thing that cannot
// be removed must not hold up everybody for ever.
func (r *Rollout) Blockers(now time.Time) []vnet.HostID {
	var names []vnet.HostID
	for _, name := range r.unfinished() {
		if h := r.hosts[name]; (h.held != nil || h.done < h.shrunk) && !r.dead(h, now) {
			names = append(names, name)
		}
	}
	return names
}

// Silent are those of some hosts that are presumed dead.
func (r *Rollout) Silent(now time.Time, hosts []vnet.HostID) []vnet.HostID {
	return r.where(hosts, func(h *handed) bool { return r.dead(h, now) })
}

// dead says whether a host has been silent for longer than liveness, or is
// known to be down.
func (r *Rollout) dead(h *handed, now time.Time) bool {
	return now.Sub(h.seen) > r.liveness || r.down[h.plan.Host]
}

// Unheard are those of some hosts whose agents have given no sign of life since
// this began, though there was time for one.
func (r *Rollout) Unheard(now time.Time, hosts []vnet.HostID) []vnet.HostID {
	return r.where(hosts, func(h *handed) bool { return !h.heard && now.Sub(h.seen) > r.liveness })
}

// Missing are those of a lease's hosts that have not yet got all of it.
func (r *Rollout) Missing(id vnet.LeaseID, hosts []vnet.HostID) []vnet.HostID {
	return r.where(hosts, func(h *handed) bool { return h.lacks[id] || h.half || h.done < h.parts[id].since })
}

// Remaining are those of a lease's hosts that may still have something of it.
func (r *Rollout) Remaining(id vnet.LeaseID, hosts []vnet.HostID) []vnet.HostID {
	return r.where(hosts, func(h *handed) bool { _, ok := h.parts[id]; return ok })
}

// Unsure are those of some hosts that say of something of a lease, or of they
// know not whose, that it could not be done: it may still be there.
func (r *Rollout) Unsure(id vnet.LeaseID, hosts []vnet.HostID) []vnet.HostID {
	return r.where(hosts, func(h *handed) bool { return !h.rid(id) })
}

// Errors are what a lease's hosts could not do for it. What concerns a host
// itself concerns every lease on it.
func (r *Rollout) Errors(id vnet.LeaseID, hosts []vnet.HostID) []string {
	return r.texts(hosts, func(p problems) []string { return slices.Concat(p.host, p.leases[id]) })
}

// Cuts are what a lease's hosts have of it as planned and what does not carry
// all the same: nodes that do not answer, tunnels without a way.
func (r *Rollout) Cuts(id vnet.LeaseID, hosts []vnet.HostID) []string {
	return r.texts(hosts, func(p problems) []string { return p.cuts[id] })
}

// Waits are what a lease's hosts have of it and do not know yet to carry.
func (r *Rollout) Waits(id vnet.LeaseID, hosts []vnet.HostID) []string {
	return r.texts(hosts, func(p problems) []string { return p.waits[id] })
}

// texts lists what some hosts say, with their names.
func (r *Rollout) texts(hosts []vnet.HostID, of func(problems) []string) (all []string) {
	for _, name := range hosts {
		if h := r.hosts[name]; h != nil {
			for _, text := range of(h.problems) {
				all = append(all, string(name)+": "+text)
			}
		}
	}
	return all
}

// Next is when a host that holds others up will be presumed dead; zero: never.
func (r *Rollout) Next(now time.Time) time.Time {
	var next time.Time
	for _, name := range r.Blockers(now) {
		next = earlier(next, r.hosts[name].seen.Add(r.liveness+1))
	}
	return next
}

// Plan is what was published for a host, as it is handed out.
func (r *Rollout) Plan(host vnet.HostID) (p plan.Host, ok bool) {
	if h := r.hosts[host]; h != nil {
		p = h.plan
		p.Store, p.Terms = r.store, r.terms
		return p, true
	}
	return plan.Host{}, false
}

// Plans are the published ones.
func (r *Rollout) Plans() map[vnet.HostID]plan.Host {
	plans := make(map[vnet.HostID]plan.Host, len(r.hosts))
	for name, h := range r.hosts {
		plans[name] = h.plan
	}
	return plans
}

// publish gives out a plan, signed.
func (r *Rollout) publish(name vnet.HostID, p plan.Host, shrinks bool) {
	r.revision++
	r.begin()
	h := r.hosts[name]
	p.Revision, p.Store, p.Term, p.Adopt, p.Half = r.revision, r.store, r.term, h.adopt, h.half
	h.publish(p, shrinks)
	r.changed[name] = true
	r.mind(name)
}

// unfinished are the hosts that are not what they shall be, sorted.
func (r *Rollout) unfinished() []vnet.HostID { return slices.Sorted(maps.Keys(r.open)) }

func (r *Rollout) where(hosts []vnet.HostID, is func(*handed) bool) []vnet.HostID {
	var names []vnet.HostID
	for _, name := range hosts {
		if h := r.hosts[name]; h != nil && is(h) {
			names = append(names, name)
		}
	}
	return names
}

// earlier is the earlier of two times of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
