package vxlink

import (
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// TunnelClass is a tunnel of this host, and the class by which its packets leave.
type TunnelClass struct {
	plan.Tunnel
	Handle uint32
}

// tunnelsSeen is since when the list of tunnels is the same.
type tunnelsSeen struct {
	of      *programs
	changes uint64
}

// Tunnels are those that have a class and no relay list, if there may be others than at
// the last call: a probe goes by the substrate's own way, and a relay list by another.
func (p *Part) Tunnels() (list []TunnelClass, anew bool) {
	p.loading.Lock()
	r := p.loaded
	p.loading.Unlock()
	if r == nil {
		return nil, false
	}
	now := tunnelsSeen{r, r.changes.Load()}
	if now == p.seen {
		return nil, false
	}
	all, err := r.all()
	if err != nil {
		return nil, false // the maps are closing
	}
	p.seen = now
	for _, record := range all {
		if record.IsTunnel != 0 && record.Minor != 0 && record.List == 0 {
			list = append(list, TunnelClass{*record.tunnel(""), handleOf(record.Minor)})
		}
	}
	return list, true
}

// latency is that of the slowest of some tunnels, by their numbers.
func (p *Part) latency(tunnels []uint32) (slowest report.Latency) {
	if p.Latency == nil {
		return slowest
	}
	for _, vni := range tunnels {
		if l := p.Latency(vnet.VNI(vni)); l.Asked > 0 && (slowest.Asked == 0 || l.RTT() > slowest.RTT()) {
			slowest = l
		}
	}
	return slowest
}

// tunnelsOf are the tunnels among some slots, by their numbers.
func tunnelsOf(all map[uint32]vxlinkRecord, slots []uint32) (list []uint32) {
	for _, slot := range slots {
		if r := all[slot]; r.IsTunnel != 0 {
			list = append(list, r.Vni)
		}
	}
	return list
}
