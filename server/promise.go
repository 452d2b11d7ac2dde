package server

import (
	"fmt"

	"sublet/vnet"
)

// promises are the states of what proofs judge now, by direction of a link: kept,
// broken (until it is told as kept again), or not tested.
func (p *proving) promises() map[ofLink]vnet.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	states := make(map[ofLink]vnet.Outcome, len(p.directions))
	for at, l := range p.directions {
		states[at] = l.state()
	}
	return states
}

func (l promise) state() vnet.Outcome {
	switch {
	case l.outcome == "":
		return vnet.NotTested
	case l.broken:
		return vnet.Broken
	}
	return l.outcome
}

// latencies are those of links' bounds of latency, likewise.
func (p *proving) latencies() map[ofLink]vnet.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	states := make(map[ofLink]vnet.Outcome)
	for at, l := range p.directions {
		if l.latency.outcome != "" {
			states[at] = l.latency.state()
		}
	}
	return states
}

// brokenOf lists the directions of a lease's links whose promises are broken.
func brokenOf(l vnet.Lease, states map[ofLink]vnet.Outcome) (list []string) {
	for _, link := range l.Topology().Promised(l.Request.Chains) {
		for _, d := range vnet.Directions {
			if states[ofLink{l.ID(), link.Name, d}] == vnet.Broken {
				list = append(list, directionText(link, d))
			}
		}
	}
	return list
}

// directionText names a direction of a link.
func directionText(link vnet.VirtualLink, d vnet.Direction) string {
	return fmt.Sprintf("%s %s to %s", link.Name, link.Ends[d], link.Ends[d.Opposite()])
}
