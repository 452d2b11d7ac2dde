package rollout

import (
	"slices"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// Blockers are the live hosts that have not yet done what shrinks, sorted.
// Those that wait to be adopted are among them: nobody knows what they carry.
// A host that went through its plan with errors does not block: one thing that
// cannot be removed must not stop all others for ever.
func (r *Rollout) Blockers(now time.Time) []vnet.HostID {
	var names []vnet.HostID
	for _, name := range r.pendingHosts() {
		if h := r.hosts[name]; (h.held != nil || h.done < h.shrunk) && !r.dead(h, now) {
			names = append(names, name)
		}
	}
	return names
}

// Silent are those of some hosts that are presumed dead.
func (r *Rollout) Silent(now time.Time, hosts []vnet.HostID) []vnet.HostID {
	return r.filter(hosts, func(h *hostState) bool { return r.dead(h, now) })
}

// dead says whether a host has been silent for longer than liveness, or is
// known to be down.
func (r *Rollout) dead(h *hostState, now time.Time) bool {
	return now.Sub(h.seen) > r.liveness || r.down[h.plan.Host]
}

// Unheard are those of some hosts whose agents have given no sign of life since
// this began, though there was time for one.
func (r *Rollout) Unheard(now time.Time, hosts []vnet.HostID) []vnet.HostID {
	return r.filter(hosts, func(h *hostState) bool { return !h.heard && now.Sub(h.seen) > r.liveness })
}

// Missing are those of a lease's hosts that have not yet got all of it.
func (r *Rollout) Missing(id vnet.LeaseID, hosts []vnet.HostID) []vnet.HostID {
	return r.filter(hosts, func(h *hostState) bool { return h.lacks[id] || h.half || h.done < h.parts[id].since })
}

// Remaining are those of a lease's hosts that may still have something of it.
func (r *Rollout) Remaining(id vnet.LeaseID, hosts []vnet.HostID) []vnet.HostID {
	return r.filter(hosts, func(h *hostState) bool { _, ok := h.parts[id]; return ok })
}

// Unsure are those of a lease's hosts that may still have something of it
// which their plans do not: they reported an error of it, or one of an item
// whose lease is not known.
func (r *Rollout) Unsure(id vnet.LeaseID, hosts []vnet.HostID) []vnet.HostID {
	return r.filter(hosts, func(h *hostState) bool { return !h.cleared(id) })
}

// Errors are what a lease's hosts could not do for it. What concerns a host
// itself concerns every lease on it.
func (r *Rollout) Errors(id vnet.LeaseID, hosts []vnet.HostID) []string {
	return r.texts(hosts, func(p problems) []string { return slices.Concat(p.host, p.leases[id]) })
}

// Cuts are what a lease's hosts have of it as planned and what does not carry
// all the same: nodes that do not answer, tunnels without a route.
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

// Next is when the first of the Blockers will be presumed dead; zero: never.
func (r *Rollout) Next(now time.Time) time.Time {
	var next time.Time
	for _, name := range r.Blockers(now) {
		if dies := r.hosts[name].seen.Add(r.liveness + 1); next.IsZero() || dies.Before(next) {
			next = dies
		}
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

// Target is what a host shall have in the end.
func (r *Rollout) Target(host vnet.HostID) plan.Host {
	if h := r.hosts[host]; h != nil {
		return h.target
	}
	return plan.Host{Host: host}
}

// Plans are the published ones.
func (r *Rollout) Plans() map[vnet.HostID]plan.Host {
	plans := make(map[vnet.HostID]plan.Host, len(r.hosts))
	for name, h := range r.hosts {
		plans[name] = h.plan
	}
	return plans
}

func (r *Rollout) filter(hosts []vnet.HostID, is func(*hostState) bool) []vnet.HostID {
	var names []vnet.HostID
	for _, name := range hosts {
		if h := r.hosts[name]; h != nil && is(h) {
			names = append(names, name)
		}
	}
	return names
}
