package lease

import (
	"fmt"
	"slices"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// Terms are kept for hosts that were away while servers came and went. A term
// in which nothing was published is none. What hosts have of a term that is
// older than renewAfter others is published again, long before mostTerms
// forget it.
const (
	mostTerms  = 64
	renewAfter = 32
)

// Begin names the store, if it has no name yet, and the term of the server
// that writes from now on. Both are random, from outside: the same after a
// restart is another term.
func (b *Book) Begin(store, term string) {
	if b.rollout.store == "" {
		b.rollout.store, b.changed.named = store, true
	}
	b.rollout.term = term
}

// Adopt makes a host whose agent keeps another plan follow this book's: first
// what both allow, then, when all hosts have come that far, the rest. The
// error is ErrUnknown, or ErrConflict when the agent keeps none.
func (b *Book) Adopt(now time.Time, host vnet.HostID) error {
	h := b.rollout.hosts[host]
	if h == nil {
		return fmt.Errorf("adopt host %s: %w", host, ErrUnknown)
	}
	if h.held == nil {
		return fmt.Errorf("adopt host %s: %w: its agent follows this server or has not been heard of", host, ErrConflict)
	}
	b.rollout.adopt(host)
	return b.Tick(now)
}

// adopt publishes a host's plan to whoever has what it said it keeps.
func (r *Rollout) adopt(host vnet.HostID) {
	h := r.hosts[host]
	origin := h.held.Origin
	h.adopt, h.half = &origin, true
	r.revision = max(r.revision, origin.Revision)
	r.publish(host, h.plan, true)
}

// begin notes the term, once something is published in it.
func (r *Rollout) begin() {
	if n := len(r.terms); n > 0 && r.terms[n-1].ID == r.term {
		return
	}
	r.terms = append(slices.Clone(r.terms), plan.Term{ID: r.term, From: r.revision})
	if old := len(r.terms) - 1 - renewAfter; old >= 0 {
		for name, h := range r.hosts {
			if h.plan.Term == r.terms[old].ID {
				r.publish(name, h.plan, false)
			}
		}
	}
	r.terms = r.terms[max(0, len(r.terms)-mostTerms):]
}

// knows says whether this store gave out a plan.
func (r *Rollout) knows(o plan.Origin) bool {
	return len(r.terms) == 0 || plan.Host{Revision: r.revision, Terms: r.terms}.Follows(o)
}

// keeps is what an agent keeps its host at instead of this store's plan; nil:
// it follows.
func (r *Rollout) keeps(report plan.Report) *plan.Held {
	if report.Held == nil && report.Plan != nil && !r.knows(*report.Plan) {
		return &plan.Held{Origin: *report.Plan, Why: "it has the plan of another store"}
	}
	return report.Held
}

// Awaiting are the live hosts that wait to be adopted, sorted.
func (r *Rollout) Awaiting(now time.Time) (names []vnet.HostID) {
	for _, name := range r.unfinished() {
		if h := r.hosts[name]; h.held != nil && !r.dead(h, now) {
			names = append(names, name)
		}
	}
	return names
}
