package main

import (
	"sublet/measure/probe"
	"sublet/plan"
	"sublet/vnet"
)

// Nobody can send or receive at a switch, so its links are measured by streams
// between the nodes behind it.

// across are the targets of such streams, each called after the link it fills.
func across(l vnet.Lease, streams []plan.Stream) []probe.Target {
	var targets []probe.Target
	for _, c := range streams {
		link, _ := l.Topology().Link(c.From.Link)
		asked := link.Bandwidth[c.From.Dir]
		t := probe.Target{
			Link: c.From.Link, From: c.Ends[0], To: c.Ends[1],
			FromIf: c.Ports[0].Interface, ToIf: c.Ports[1].Interface,
			FromAddr: c.Ports[0].Address, ToAddr: c.Ports[1].Address,
			MTU: c.Ports[0].MTU, Min: min(asked.Min, c.Rate), Max: asked.Max,
			Alloc: c.Rate, Open: asked.Max == vnet.Unbounded,
		}
		if t.Open || t.Max > c.Rate && c.Rate < l.Rates[c.From.Link][c.From.Dir] { // a switch's port takes less
			t.Max = t.Alloc
		}
		targets = append(targets, t)
	}
	return targets
}

// behind are the verdicts on the other directions of links at switches: of one
// that a stream filled too, what was measured of the stream; of the rest, that
// no stream could fill it while all others were full.
func behind(l vnet.Lease, streams []plan.Stream, measured []vnet.LinkVerdict) []vnet.LinkVerdict {
	top := l.Topology()
	filled := make(map[plan.DirectedLink]vnet.LinkVerdict)
	began := make(map[plan.DirectedLink]bool)
	for _, c := range streams {
		began[c.From] = true
		for _, v := range measured {
			if c.Saturates && v.Name == c.From.Link && v.From == c.Ends[0] && v.To == c.Ends[1] {
				filled[c.To] = v
			}
		}
	}
	var list []vnet.LinkVerdict
	for _, link := range top.Links {
		_, a := top.Switch(link.Ends[0])
		_, b := top.Switch(link.Ends[1])
		for _, d := range vnet.Directions {
			is := plan.DirectedLink{Link: link.Name, Dir: d}
			if !a && !b || began[is] {
				continue
			}
			v, ok := filled[is]
			if !ok {
				v = vnet.LinkVerdict{OK: true, Why: "not measured: no stream between nodes fills it alone"}
			}
			v.Name, v.From, v.To = link.Name, link.Ends[d], link.Ends[d.Opposite()]
			v.Min, v.Max, v.Alloc = link.Bandwidth[d].Min, link.Bandwidth[d].Max, l.Rates[link.Name][d]
			if v.Max == vnet.Unbounded {
				v.Max = v.Alloc
			}
			list = append(list, v)
		}
	}
	return list
}
