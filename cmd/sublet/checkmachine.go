package main

import (
	"sublet/measure/probe"
	"sublet/vnet"
)

// machinesOf are the nodes in which nothing of ours runs: machines, and those that join.
func machinesOf(top vnet.Topology) map[string]bool {
	machines := make(map[string]bool)
	for _, n := range top.Nodes {
		if n.Machine() || n.Join != "" {
			machines[n.Name] = true
		}
	}
	return machines
}

// withoutMachines leaves out what is sent or received in a machine: no probe runs
// there.
func withoutMachines(top vnet.Topology, targets []probe.Target) (rest []probe.Target) {
	machines := machinesOf(top)
	for _, t := range targets {
		if !machines[t.From] && !machines[t.To] {
			rest = append(rest, t)
		}
	}
	return rest
}

// ofMachine is why a link of a machine is not measured.
const ofMachine = notMeasuredFor + "what sends or receives over it is a machine, or one that joins"

// ofMachines completes a verdict with the links of which nothing was measured.
// Nothing speaks against them, and they are not kept either.
func ofMachines(l vnet.Lease, v *vnet.Verdict) {
	machines := machinesOf(l.Topology())
	if len(machines) == 0 {
		return
	}
	type direction struct{ link, from string }
	there := make(map[direction]bool)
	for _, link := range v.Links {
		there[direction{link.Name, link.From}] = true
	}
	for _, link := range l.Topology().Links {
		for _, d := range vnet.Directions {
			if there[direction{link.Name, link.Ends[d]}] || link.Down || link.Chain != "" {
				continue
			}
			why := notMeasuredFor + "no stream fills it but of machines, or of nodes that join, if any does"
			if machines[link.Ends[0]] || machines[link.Ends[1]] {
				why = ofMachine
			}
			v.Links = append(v.Links, vnet.LinkVerdict{
				Name: link.Name, From: link.Ends[d], To: link.Ends[d.Opposite()], OK: true, Outcome: vnet.NotMeasured, Why: why,
				Min: link.Bandwidth[d].Min, Max: min(link.Bandwidth[d].Max, l.Rates[link.Name][d]), Alloc: l.Rates[link.Name][d],
			})
			if v.Outcome == vnet.Kept {
				v.OK, v.Outcome = false, vnet.NotMeasured
			}
		}
	}
}
