package main

import (
	"fmt"
	"slices"

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
			Latency: c.Latency, Alloc: c.Rate, Open: asked.Max == vnet.Unbounded,
		}
		if t.Open || t.Max > c.Rate && c.Rate < l.Rates[c.From.Link][c.From.Dir] { // a switch's port, or who receives, takes less
			t.Max = t.Alloc
		}
		targets = append(targets, t)
	}
	return targets
}

// partly says how far a link was filled that gets its minimum so, but that no
// stream fills.
func partly(v vnet.LinkVerdict, asked, all vnet.Rate) vnet.LinkVerdict {
	v.Alloc = asked
	if v.OK {
		v.Why += fmt.Sprintf("; filled to %s of %s: no stream between nodes fills it alone", asked, all)
	}
	return v
}

// openFlow says that some switch forwards as its controller says.
func openFlow(top vnet.Topology) bool {
	return slices.ContainsFunc(top.Switches, func(s vnet.VirtualSwitch) bool { return s.Kind == vnet.SwitchOpenFlow })
}

// notMeasured says why nothing was measured of a link.
func notMeasured(top vnet.Topology, l vnet.VirtualLink) string {
	if l.Control {
		return notMeasuredFor + "it ends in the switch that it controls"
	}
	for _, end := range l.Ends {
		if s, ok := top.Switch(end); ok && s.Kind == vnet.SwitchOpenFlow {
			return fmt.Sprintf("%swhat switch %s forwards is its controller's matter", notMeasuredFor, end)
		}
	}
	return notMeasuredFor + "no stream between nodes fills it alone"
}

// behind completes the verdicts with those on the other directions of links at
// switches: of one that a stream filled too, or to its minimum, what was
// measured of the stream; of the rest, that no stream could fill it while all
// others were full.
func behind(l vnet.Lease, streams []plan.Stream, measured []vnet.LinkVerdict) []vnet.LinkVerdict {
	top := l.Topology()
	filled := make(map[plan.DirectedLink]vnet.LinkVerdict)
	began := make(map[plan.DirectedLink]bool)
	for _, c := range streams {
		began[c.From] = true
		i := slices.IndexFunc(measured, func(v vnet.LinkVerdict) bool {
			return v.Name == c.From.Link && v.From == c.Ends[0] && v.To == c.Ends[1]
		})
		if i < 0 {
			continue
		}
		link, _ := top.Link(c.To.Link)
		v, all := measured[i], l.Rates[c.To.Link][c.To.Dir]
		if least := link.Bandwidth[c.To.Dir].Min; c.Saturates {
			v.Alloc = all
			filled[c.To] = v
		} else if least > 0 && c.Rate >= least {
			filled[c.To] = partly(v, c.Rate, all)
		}
		if !c.Fills {
			measured[i] = partly(v, c.Rate, l.Rates[c.From.Link][c.From.Dir])
		}
	}
	for i, v := range measured {
		if link, _ := top.Link(v.Name); link.Latency > 0 && v.LatencyBound == 0 {
			measured[i].Why += "; its bound on latency is not judged: other links of the way have none"
		}
	}
	for _, link := range top.Links {
		_, a := top.Switch(link.Ends[0])
		_, b := top.Switch(link.Ends[1])
		for _, d := range vnet.Directions {
			is := plan.DirectedLink{Link: link.Name, Dir: d}
			if !link.Down && (!a && !b || began[is]) {
				continue
			}
			v, ok := filled[is]
			switch {
			case link.Down:
				v = vnet.LinkVerdict{OK: true, Outcome: vnet.LinkDown, Alloc: l.Rates[link.Name][d], Why: "it was taken down, so nothing is promised of it"}
			case !ok:
				v = vnet.LinkVerdict{OK: true, Outcome: vnet.NotMeasured, Alloc: l.Rates[link.Name][d], Why: notMeasured(top, link)}
			}
			v.Name, v.From, v.To = link.Name, link.Ends[d], link.Ends[d.Opposite()]
			v.Min, v.Max = link.Bandwidth[d].Min, link.Bandwidth[d].Max
			if v.Max == vnet.Unbounded {
				v.Max = v.Alloc
			}
			measured = append(measured, v)
		}
	}
	return measured
}
