package iplbd

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Labels of paths.
const (
	labelPrefix = "prefix"
	labelVNI    = "vni"
	labelMode   = "mode"
	labelForm   = "by"
	labelRelays = "relays" // "": the fabric's own path
	labelFlow   = "flow"
	labelFrom   = "from"
	labelTo     = "to"
)

// Samples tell of each path, and to who may see everything, of the moves that
// are remembered and of what became of packets.
func (p *Part) Samples(ctx context.Context, of report.Scope) ([]report.Sample, error) {
	ask := p.Ask
	if p.daemon != nil {
		ask = p.daemon.Ask
	}
	s, err := ask(ctx)
	if err != nil {
		return nil, err
	}
	return s.samples(of), nil
}

func (s Status) samples(of report.Scope) []report.Sample {
	var list []report.Sample
	for _, prefix := range s.Prefixes {
		for _, path := range prefix.Paths {
			if of.Holds(path.Owner) {
				list = append(list, path.sample(prefix))
			}
		}
	}
	if of.Holds(vnet.LeaseID{}) && len(list) > 0 {
		list = append(list, s.moves()...)
		list = append(list, s.outcomes())
	}
	return list
}

func (p PathStatus) sample(of PrefixStatus) report.Sample {
	s := report.Sample{
		Kind: plan.KindSpread, Key: plan.Spread{Prefix: of.Prefix, VNI: of.VNI}.Key(), Lease: p.Owner, State: report.State(p.Health),
		Labels: map[string]string{labelPrefix: of.Prefix.String(), labelMode: string(of.Mode), labelForm: string(of.By), labelRelays: relaysText(p.Relays)},
	}
	if of.VNI != 0 {
		s.Labels[labelVNI] = fmt.Sprint(of.VNI)
	}
	s.Count(report.Sent, report.Packets, p.Packets)
	s.Count(report.Sent, report.Bytes, p.Bytes)
	s.Gauge("weight", report.None, uint64(p.Weight))
	s.Gauge("flows", report.Flows, uint64(p.Flows))
	s.Gauge("rtt", report.Nanoseconds, uint64(max(p.RTT, 0)))
	return s
}

// moves are those that are remembered, each with its own time.
func (s Status) moves() (list []report.Sample) {
	for _, m := range s.Moves {
		list = append(list, report.Sample{
			Kind: plan.KindSpread, Key: m.Prefix.String(), At: m.At, State: report.Moved, Why: m.Why,
			Labels: map[string]string{labelFlow: m.Flow, labelFrom: relaysText(m.From), labelTo: relaysText(m.To)},
		})
	}
	return list
}

// outcomes are of all packets that were to be spread.
func (s Status) outcomes() report.Sample {
	one := report.Sample{Kind: plan.KindSpread}
	one.Count("moved", report.Flows, s.Moved)
	one.CountBy("outcome", s.Outcomes)
	return one
}

func relaysText(relays []netip.Addr) string {
	words := make([]string, len(relays))
	for i, r := range relays {
		words[i] = r.String()
	}
	return strings.Join(words, ",")
}
