package rollout

import (
	"fmt"
	"maps"
	"slices"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// problems are a report's errors, by who learns of them.
type problems struct {
	leases map[vnet.LeaseID][]string
	cuts   map[vnet.LeaseID][]string // what is there as planned and does not carry
	waits  map[vnet.LeaseID][]string // what is there, and whether it carries is not known yet
	host   []string                  // concern every lease on the host
	unsure bool                      // which leases still have something there is not known
}

// unreadable is what tenants learn of a host that cannot read what it has:
// the text of the error, which the operator sees, may name leases of others.
const unreadable = "what is there cannot be read; the operator sees why (sublet hosts)"

// problemsOf sorts a report's errors.
func problemsOf(told report.Report, held *report.Held) problems {
	p := problems{leases: make(map[vnet.LeaseID][]string), cuts: make(map[vnet.LeaseID][]string), waits: make(map[vnet.LeaseID][]string)}
	if held != nil {
		p.unsure = true
		p.host = []string{fmt.Sprintf("keeps what runs there until it is adopted (sublet hosts adopt %s): %s", told.Host, held.Why)}
		return p
	}
	for _, e := range told.Errors {
		switch {
		case plan.OwnerOf(e.Kind) != plan.ByServer: // no lease has anything of that; the operator sees it
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

// cleared says whether a host has removed all that it was told to remove of a
// lease, as far as its errors go.
func (p problems) cleared(id vnet.LeaseID) bool { return !p.unsure && len(p.leases[id]) == 0 }
