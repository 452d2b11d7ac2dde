package chain

import (
	"context"

	"sublet/datapath/nsh"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Counts are those of chains with a rate: where it is held, what functions dropped as
// they should, and what left the chain here. Of a lease whose hops are just being made
// nothing is known.
func (p *Part) Counts(context.Context) (report.Counts, error) {
	if err := p.readHeld(); err != nil {
		return report.Counts{}, err
	}
	items := p.held.list(func(plan.Chains) bool { return true })
	all, err := p.counted(items)
	if err != nil { // of one of them
		all = nil
		for _, c := range items {
			if one, err := p.counted([]plan.Chains{c}); err == nil {
				all = append(all, one...)
			}
		}
	}
	list, values := report.NewCounts(), []report.LinkSums(nil)
	for _, h := range all {
		values = append(values, p.countsOf(h, list)...)
	}
	counts := list.Done()
	counts.Values = values
	return counts, nil
}

// meant are causes of drops that a function, or a packet that is too large, is for.
var meant = []string{"denied", "limited", "no-port", "no-state", "no-backend", "fragment", "too-big"}

// countsOf are those of a lease's chains, which are added to the list.
func (p *Part) countsOf(h Held, list *report.CountsList) (values []report.LinkSums) {
	at := make(map[report.LinkWay]int)
	add := func(hop plan.ChainHop, part report.ChainPart, sums report.LinkSums) {
		way := report.LinkWay{Lease: h.Lease, Link: vnet.ChainWay(hop.Chain), Part: part, Enters: part == report.Begins, Leaves: part == report.Ends}
		if hop.Back {
			way.Direction = vnet.Reverse
		}
		i, ok := at[way]
		if !ok {
			i, at[way] = len(values), len(values)
			if part == report.Through && p.Short != nil {
				way.Why = p.Short(h.Lease, hop.Chain)
			}
			list.Chain(way)
			values = append(values, report.LinkSums{})
		}
		for k, n := range sums {
			values[i][k] += n
		}
	}
	for i, hop := range h.Hops {
		if i >= len(h.Counts) {
			break
		}
		n := h.Counts[i]
		f, _ := h.Function(hop.Function)
		switch {
		case hop.Chain == "" || hop.Behind:
		case f.Type == vnet.FunctionBalancer && !hop.Back: // as far as one host sees them all
			add(hop, report.Ends, report.LinkSums{n.Packets, n.Bytes})
		case hop.HoldsRate():
			add(hop, report.Begins, report.LinkSums{n.Packets, n.Bytes, n.Drops["limited"]})
		case hop.Egress != "":
			add(hop, report.Ends, report.LinkSums{n.Packets, n.Bytes})
		default:
			add(hop, report.Through, through(h.Chains, hop, n))
		}
	}
	return values
}

// through is what a hop lets not pass as it should.
func through(c plan.Chains, hop plan.ChainHop, n nsh.Counts) (sums report.LinkSums) {
	for _, cause := range meant {
		sums[0] += n.Drops[cause]
	}
	f, ok := c.Function(hop.Function)
	if ok && f.Type == vnet.FunctionClassifier { // what went to other chains
		sums[0] += n.Returned
	}
	if ok && f.Type == vnet.FunctionProgram {
		sums[1], sums[2] = n.Packets, n.Returned
	}
	return sums
}
