package lease

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"sublet/vnet"
)

// whatIsDown puts what is down before the reasons of a refusal, which do not
// know of it.
func (g *resources) whatIsDown(reasons []string) []string {
	const most = 4
	var down []string
	for _, h := range g.sub.Hosts {
		if h.Down {
			down = append(down, fmt.Sprintf("host %s is down", h.Name))
			reasons = slices.DeleteFunc(reasons, func(r string) bool { return r == fmt.Sprintf("there is no host %s", h.Name) })
		}
	}
	for _, h := range g.working.Hosts {
		if h.Drained {
			down = append(down, fmt.Sprintf("host %s is drained", h.Name))
			reasons = slices.DeleteFunc(reasons, func(r string) bool { return r == fmt.Sprintf("there is no host %s", h.Name) })
		}
	}
	for _, l := range g.sub.Links {
		if l.Down {
			down = append(down, fmt.Sprintf("link %s is down", l.Name))
			continue
		}
		for i, dark := range l.NoCarrier {
			if dark {
				down = append(down, fmt.Sprintf("link %s has no carrier at %s", l.Name, l.Ends[i]))
				break
			}
		}
	}
	if more := len(down) - most; more > 0 {
		down = append(down[:most], fmt.Sprintf("%d more are down", more))
	}
	return append(down, reasons...)
}

// byConstraint orders leases by how little choice they have: by the hosts that
// their least free node could go to, then the shortest latency bound, then the
// largest minimum, then the order of admission.
func (b *Book) byConstraint(leases []*entry) {
	sites := make(map[string]int)
	for _, h := range b.working.Hosts {
		sites[h.Site]++
	}
	type need struct {
		hosts int
		bound time.Duration
		min   vnet.Rate
	}
	needs := make(map[*entry]need, len(leases))
	for _, e := range leases {
		n := need{hosts: len(b.working.Hosts), bound: math.MaxInt64}
		for _, node := range e.Request.Union().Placed() {
			_, works := b.working.HostOf(string(e.Mapping.Nodes[node.Name]))
			switch {
			case works && e.onHosts(): // stays
			case node.Host != "":
				n.hosts = min(n.hosts, 1)
			case node.Site != "":
				n.hosts = min(n.hosts, sites[node.Site])
			}
		}
		for _, l := range e.Request.Union().Links {
			if l.Latency > 0 {
				n.bound = min(n.bound, l.Latency)
			}
			n.min = max(n.min, l.Bandwidth[0].Min, l.Bandwidth[1].Min)
		}
		needs[e] = n
	}
	slices.SortStableFunc(leases, func(x, y *entry) int {
		a, b := needs[x], needs[y]
		return cmp.Or(cmp.Compare(a.hosts, b.hosts), cmp.Compare(a.bound, b.bound), cmp.Compare(b.min, a.min), cmp.Compare(x.Serial, y.Serial))
	})
}
