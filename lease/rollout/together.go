package rollout

import (
	"time"

	"sublet/vnet"
)

// Lead is how long before an instant hosts are told of it: their agents wait for new
// plans, and on a busy machine it takes them that long to read one.
const Lead = 400 * time.Millisecond

// Together has what changes of a lease begin at one instant on all its hosts, what
// shrinks at one and what grows at another, until all of it is published.
func (r *Rollout) Together(id vnet.LeaseID) { r.together[id] = true }

// setInstant says when a host shall begin with the plan that was just published, if
// that is of a lease whose changes begin together.
func (r *Rollout) setInstant(now time.Time, h *hostState) {
	for id := range r.together {
		if part, ok := h.parts[id]; ok && part.since == h.plan.Revision {
			h.begins = now.Add(Lead)
		}
	}
}

// Begins is when a host that is handed its plan now shall begin with it; zero: at once.
func (r *Rollout) Begins(now time.Time, host vnet.HostID) time.Time {
	h := r.hosts[host]
	if h == nil || !h.begins.After(now) {
		return time.Time{}
	}
	return earlier(h.begins, now.Add(Lead)) // no later if the clock is set back
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
