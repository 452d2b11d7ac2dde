package rollout

import (
	"maps"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// hostState is what one host was given and what it did with it.
type hostState struct {
	plan    plan.Host             // as published
	target  plan.Host             // what it shall have in the end
	grows   bool                  // target is more than plan
	lacks   map[vnet.LeaseID]bool // leases of which target differs from plan
	parts   map[vnet.LeaseID]part // leases that are on the host, or may still be
	shrunk  uint64                // the last revision that took something away
	done    uint64                // the last revision the host has gone through
	seen    time.Time             // last report, or since when one is awaited
	heard   bool                  // there was a sign of life
	removed bool                  // the host is not in the substrate any more
	held    *report.Held          // what its agent keeps it at instead; nil: it follows
	adopt   *plan.Origin          // what it may have been kept at; nil: nothing but what it was given
	begins  time.Time             // before which its agent does not begin with the plan; zero: at once
	half    bool                  // of its plan only what shrinks is to be done
	problems
}

// part is a lease's part of one host's plan.
type part struct {
	since uint64 // revision from which the plan has had this form of it
	gone  bool   // the form is: nothing
}

func newHostState(now time.Time, name vnet.HostID) *hostState {
	empty := plan.Host{Host: name}
	return &hostState{plan: empty, target: empty, parts: make(map[vnet.LeaseID]part), seen: now}
}

// publish replaces the plan and notes which leases' parts of it changed.
func (h *hostState) publish(p plan.Host, shrinks bool) {
	has := leasesOf(p)
	for id := range differing(h.plan, p) {
		h.parts[id] = part{since: p.Revision, gone: !has[id]}
	}
	h.plan = p
	if shrinks {
		h.shrunk = p.Revision
	}
}

// Prepared is a plan with what a Rollout makes of it when it goes on from it.
type Prepared struct{ of *hostState }

// Prepare makes that; the plan must not be changed from then on.
func Prepare(p plan.Host) Prepared {
	h := newHostState(time.Time{}, p.Host)
	h.restore(p)
	return Prepared{h}
}

// restore begins with a plan that was published before; it is the target until one is set.
func (h *hostState) restore(p plan.Host) {
	h.plan, h.target, h.shrunk = p, p, p.Revision
	h.adopt, h.half = p.Adopt, p.Half
	for id := range leasesOf(p) {
		h.parts[id] = part{since: p.Revision}
	}
}

// updateLacks compares the plan with the target.
func (h *hostState) updateLacks() {
	h.lacks = differing(h.plan, h.target)
	h.grows = len(h.lacks) > 0
}

// forgetRemoved forgets leases that the host has removed without an error.
func (h *hostState) forgetRemoved() {
	maps.DeleteFunc(h.parts, func(id vnet.LeaseID, p part) bool {
		return p.gone && h.done >= p.since && h.problems.cleared(id)
	})
}

// differing are the leases whose items differ between two plans; the zero
// lease stands for the host's own.
func differing(a, b plan.Host) map[vnet.LeaseID]bool {
	type key struct {
		kind plan.Kind
		key  string
	}
	items := make(map[key]plan.Item)
	for item := range a.All() {
		items[key{item.Kind(), item.Key()}] = item
	}
	differ := make(map[vnet.LeaseID]bool)
	for item := range b.All() {
		k := key{item.Kind(), item.Key()}
		if was, ok := items[k]; !ok || !plan.Equal(was, item) {
			differ[item.LeaseID()] = true
		}
		delete(items, k)
	}
	for _, item := range items {
		differ[item.LeaseID()] = true
	}
	return differ
}

func same(a, b plan.Host) bool { return len(differing(a, b)) == 0 }

func leasesOf(p plan.Host) map[vnet.LeaseID]bool {
	has := make(map[vnet.LeaseID]bool)
	for item := range p.All() {
		has[item.LeaseID()] = true
	}
	return has
}
