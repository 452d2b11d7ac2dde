package lease

import (
	"slices"

	"sublet/report"
	"sublet/vnet"
)

// updateCarriers takes in which of a host's interfaces have no carrier; true: a
// link works no more, or again. What the operator said of a link stays.
func (b *Book) updateCarriers(r report.Report) (changed bool) {
	if len(r.NoCarrier) == 0 && !b.lostCarrier(r.Host) {
		return false
	}
	var links []vnet.SubstrateLink
	for i, l := range b.sub.Links {
		for end, port := range l.Ports {
			if l.Ends[end] != string(r.Host) || port.Interface == "" {
				continue
			}
			if dark := slices.Contains(r.NoCarrier, port.Interface); dark != l.NoCarrier[end] {
				if links == nil {
					links = slices.Clone(b.sub.Links)
				}
				links[i].NoCarrier[end] = dark
			}
		}
	}
	if links == nil {
		return false
	}
	b.sub.Links, b.noCarrier = links, nil
	return true
}

// lostCarrier says whether a host said that one of its links has no carrier.
func (b *Book) lostCarrier(host vnet.HostID) bool {
	if b.noCarrier == nil {
		b.noCarrier = make(map[string]bool)
		for _, l := range b.sub.Links {
			for end, dark := range l.NoCarrier {
				if dark {
					b.noCarrier[l.Ends[end]] = true
				}
			}
		}
	}
	return b.noCarrier[string(host)]
}
