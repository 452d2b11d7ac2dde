package lease

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

func newHanded(now time.Time, name vnet.HostID) *handed {
	empty := plan.Host{Host: name}
	return &handed{plan: empty, target: empty, parts: make(map[vnet.LeaseID]part), seen: now}
}

// publish replaces the plan and notes which leases' parts of it changed.
func (h *handed) publish(p plan.Host, shrinks bool) {
	has := leasesOf(p)
	for id := range differing(h.plan, p) {
		h.parts[id] = part{since: p.Revision, gone: !has[id]}
	}
	h.plan = p
	if shrinks {
		h.shrunk = p.Revision
	}
}

// compare brings grows and lacks up to date.
func (h *handed) compare() {
	h.lacks = differing(h.plan, h.target)
	h.grows = len(h.lacks) > 0
}

// settle forgets leases that the host has removed without an error.
func (h *handed) settle() {
	maps.DeleteFunc(h.parts, func(id vnet.LeaseID, p part) bool {
		return p.gone && h.done >= p.since && h.problems.rid(id)
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
	for _, item := range a.Items() {
		items[key{item.Kind(), item.Key()}] = item
	}
	differ := make(map[vnet.LeaseID]bool)
	for _, item := range b.Items() {
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
	for _, item := range p.Items() {
		has[item.LeaseID()] = true
	}
	return has
}

// problems are a report's errors, by who learns of them.
type problems struct {
	leases map[vnet.LeaseID][]string
	cuts   map[vnet.LeaseID][]string // what is there as planned and does not carry
	waits  map[vnet.LeaseID][]string // what is there, and whether it carries is not known yet
	host   []string                  // concern every lease on the host
	unsure bool                      // nobody can tell which leases still have something there
}

// unreadable is what tenants learn of a host that cannot read what it has:
// the text of the error, which the operator sees, may name leases of others.
const unreadable = "what is there cannot be read; the operator sees why (sublet hosts)"

// problemsOf sorts a report's errors.
func problemsOf(report plan.Report, held *plan.Held) problems {
	p := problems{leases: make(map[vnet.LeaseID][]string), cuts: make(map[vnet.LeaseID][]string), waits: make(map[vnet.LeaseID][]string)}
	if held != nil {
		p.unsure = true
		p.host = []string{fmt.Sprintf("keeps what runs there until it is adopted (sublet hosts adopt %s): %s", report.Host, held.Why)}
		return p
	}
	for _, e := range report.Errors {
		switch {
		case e.Op == plan.Carry:
			p.cuts[e.Lease] = append(p.cuts[e.Lease], e.Text)
		case e.Op == plan.Await:
			p.waits[e.Lease] = append(p.waits[e.Lease], e.Text)
		case e.Op == plan.Observe && e.OfHost():
			p.unsure = true
			if !slices.Contains(p.host, unreadable) { // several parts may say so
				p.host = append(p.host, unreadable)
			}
		case e.OfHost():
			p.host = append(p.host, e.String())
		case e.Lease == vnet.LeaseID{}:
			p.unsure = true
		default:
			p.leases[e.Lease] = append(p.leases[e.Lease], e.String())
		}
	}
	return p
}

func (p problems) equal(other problems) bool {
	return p.unsure == other.unsure && slices.Equal(p.host, other.host) && maps.EqualFunc(p.leases, other.leases, slices.Equal) &&
		maps.EqualFunc(p.cuts, other.cuts, slices.Equal) && maps.EqualFunc(p.waits, other.waits, slices.Equal)
}

// rid says whether a host has none of what it was told to remove of a lease,
// as far as its errors go.
func (p problems) rid(id vnet.LeaseID) bool { return !p.unsure && len(p.leases[id]) == 0 }
