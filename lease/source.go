package lease

import (
	"errors"
	"fmt"
	"net/netip"

	"sublet/plan"
	"sublet/vnet"
)

// sources are the UDP source ports by which OpenFlow switches know the tunnels
// between two addresses; nil: there is no such switch.
type sources map[[2]netip.Addr]map[uint16]bool

// sources of all leases that have tunnels, or may still have.
func (b *Book) sources() sources {
	if len(b.sub.OpenFlow) == 0 {
		return nil
	}
	s, index := make(sources), b.index(b.sub)
	for _, e := range b.entries {
		if len(e.VNIs) == 0 {
			continue
		}
		s.add(index, e.Lease)
		if e.Move != nil && e.Move.Form == nil {
			s.add(index, e.beforeMove())
		}
	}
	return s
}

// add takes those of a lease's tunnels.
func (s sources) add(sub vnet.Indexed, l vnet.Lease) {
	for _, link := range l.Request.Union().Links {
		numbers := l.VNIs[link.Name]
		if link.Chain != "" && len(numbers) > 0 {
			numbers = numbers[1:]
		}
		cuts, _ := plan.AllTunnelHops(sub, l.Mapping, link) // what cannot be walked has no tunnels left
		for i, cut := range cuts {
			if i < len(numbers) && plan.TellsApart(sub.Substrate, cut) {
				s.take(endsOf(cut), numbers[i])
			}
		}
	}
}

func (s sources) take(ends [2]netip.Addr, vni vnet.VNI) {
	if s[ends] == nil {
		s[ends] = make(map[uint16]bool)
	}
	s[ends][plan.SourceOf(vni)] = true
}

// endsOf are the outer addresses of a tunnel, the lower one first.
func endsOf(cut []vnet.Hop) [2]netip.Addr {
	first, last := cut[0], cut[len(cut)-1]
	ends := [2]netip.Addr{first.Link.Ports[first.Dir].Address, last.Link.Ports[last.Dir.Opposite()].Address}
	if ends[1].Less(ends[0]) {
		ends[0], ends[1] = ends[1], ends[0]
	}
	return ends
}

// nextFor is the number of a tunnel, or of a chain's path, which has no hops.
func (v *vnis) nextFor(sub vnet.Indexed, taken sources, cut []vnet.Hop) (next vnet.VNI, err error) {
	apart := taken != nil && len(cut) > 0 && plan.TellsApart(sub.Substrate, cut)
	var ends [2]netip.Addr
	if next = v.lowest(); apart {
		ends = endsOf(cut)
		if len(taken[ends]) == plan.Sources {
			return 0, fmt.Errorf("OpenFlow switches tell %d tunnels between %s and %s apart, and all are in use", plan.Sources, ends[0], ends[1])
		}
		next = v.lowestThat(func(vni vnet.VNI) bool { return !taken[ends][plan.SourceOf(vni)] })
	}
	if next > vnet.MaxVNI {
		return 0, errors.New("all tunnel identifiers are in use")
	}
	if apart {
		taken.take(ends, next)
	}
	return next, nil
}
