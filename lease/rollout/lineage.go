package rollout

import (
	"slices"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// MaxTerms are kept for hosts that were away while servers came and went. A
// term in which nothing was published is not listed. What hosts have of a term
// that is older than renewAfter others is published again, long before the
// term is forgotten.
const (
	MaxTerms   = 64
	renewAfter = 32
)

// Lineage says whose plans these are: the store, the terms of the servers that
// published any, oldest first, and the last revision given out, which never
// goes back.
type Lineage struct {
	Revision uint64
	Store    string // identity of the store, random; "": not named yet
	Terms    []plan.Term
}

// Lineage is that of the plans so far.
func (r *Rollout) Lineage() Lineage { return Lineage{r.revision, r.store, r.terms} }

// Begin names the store, if it has no name yet, and the term of the server
// that writes from now on. True: the name is new.
func (r *Rollout) Begin(store, term string) (named bool) {
	if named = r.store == ""; named {
		r.store = store
	}
	r.term = term
	return named
}

// Held is what a host's agent keeps it at instead of following its plan; nil:
// it follows, or has not been heard of. False: there is no such host.
func (r *Rollout) Held(host vnet.HostID) (*report.Held, bool) {
	if h := r.hosts[host]; h != nil {
		return h.held, true
	}
	return nil, false
}

// Adopt publishes a Held host's plan as one that its agent may follow from
// what it keeps: first what both allow, then, when all hosts have come that
// far, the rest.
func (r *Rollout) Adopt(host vnet.HostID) {
	h := r.hosts[host]
	origin := h.held.Origin
	h.adopt, h.half = &origin, true
	r.revision = max(r.revision, origin.Revision)
	r.publish(host, h.plan, true)
}

// noteTerm notes the term, once something is published in it.
func (r *Rollout) noteTerm() {
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
	r.terms = r.terms[max(0, len(r.terms)-MaxTerms):]
}

// knows says whether this store gave out a plan.
func (r *Rollout) knows(o plan.Origin) bool {
	return len(r.terms) == 0 || plan.Host{Revision: r.revision, Terms: r.terms}.Follows(o)
}

// keeps is what an agent keeps its host at instead of this store's plan; nil:
// it follows.
func (r *Rollout) keeps(told report.Report) *report.Held {
	if told.Held == nil && told.Plan != nil && !r.knows(*told.Plan) {
		return &report.Held{Origin: *told.Plan, Why: "it has the plan of another store"}
	}
	return told.Held
}

// Awaiting are the live hosts that wait to be adopted, sorted.
func (r *Rollout) Awaiting(now time.Time) (names []vnet.HostID) {
	for _, name := range r.pendingHosts() {
		if h := r.hosts[name]; h.held != nil && !r.dead(h, now) {
			names = append(names, name)
		}
	}
	return names
}
