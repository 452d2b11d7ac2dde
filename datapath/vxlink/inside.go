package vxlink

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// What root of a node does to the interface of a link is his where nobody else
// loses by it: that it is down, and a smaller MTU. Whether a side was set down by
// him, or was not set up yet by an agent that was killed, the pair's mark says: it
// is set last, and nobody in a node can change it.

// complete says that both sides of a pair were set up since it was made.
func complete(ours kernel.Link) bool { return ours.Alias != "" }

// insideOf is what a tenant made of a port that was complete once; false: it is
// not as it may be.
func insideOf(namespace string, inner, ours kernel.Link) (plan.Inside, bool) {
	if !plan.TenantsNode(namespace) {
		return plan.Inside{}, inner.Up && inner.MTU == ours.MTU
	}
	return plan.Inside{Down: !inner.Up, NoIPv6: inner.MTU < min(ours.MTU, plan.LeastIPv6)}, inner.MTU <= ours.MTU
}

// change begins a change of a device that also brings it up, or leaves it down.
func change(index int, up bool) *kernel.Message {
	if up {
		return kernel.UpLink(index)
	}
	return kernel.ChangeLink(index)
}

// isStation says whether a port is a node's, which has an address unless it is
// down.
func isStation(p *plan.Port) bool { return p.Address.IsValid() || p.Inside.Down }

// downInside says of a port that it was set down.
func downInside(p *plan.Port) string {
	_, node, _ := plan.ParseNamespace(p.Namespace)
	return fmt.Sprintf("%s: %s is down inside", node, p.Interface)
}

// mostDown bounds the problems of a lease: a tenant who sets all of many interfaces
// down would else make a report that the server takes from nobody.
const mostDown = 16

// Problems are the ports that carry nothing since their tenants set them down, as
// last observed, the first of each lease.
func (p *Part) Problems() (list report.Errors) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := make(map[vnet.LeaseID]int)
	for _, key := range slices.Sorted(maps.Keys(p.down)) {
		e := p.down[key]
		if of[e.Lease]++; of[e.Lease] <= mostDown {
			list = append(list, e)
		}
	}
	return list
}

// downOf says which ports of a link, whatever its path, are down inside; "": none.
func (p *Part) downOf(l plan.VxLink) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.down) == 0 {
		return ""
	}
	l.Path = 0
	var texts []string
	for i := range l.Ends {
		if e, is := p.down[l.Key()+l.Device(i)]; is {
			texts = append(texts, e.Text)
		}
	}
	return strings.Join(texts, ", ")
}

// gone forgets a link's ports, of which one is not there any more.
func (p *Part) gone(l plan.VxLink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range l.Ends {
		delete(p.down, l.Key()+l.Device(i))
	}
}
