package vxlink

import (
	"context"
	"fmt"

	"sublet/datapath/bpf"
	"sublet/datapath/hop"
	"sublet/report"
)

// counts sums up what the processors counted of the frames that entered by a
// slot's end.
func (r *programs) counts(slot uint32) (sum vxlinkCounts, err error) {
	var each []vxlinkCounts
	if err := r.counters.Lookup(slot, &each); err != nil {
		return sum, fmt.Errorf("read the counters of slot %d: %w", slot, err)
	}
	for _, c := range each {
		sum.Packets += c.Packets
		sum.Bytes += c.Bytes
		sum.Uncounted += c.Uncounted
		for i, n := range c.Drops {
			sum.Drops[i] += n
		}
	}
	return sum, nil
}

// zero empties the counters of a slot.
func (r *programs) zero(slot uint32) error {
	return r.counters.Put(slot, make([]vxlinkCounts, r.processors))
}

// Samples are what this host counted of leases' links, one for each direction,
// by lease, link and direction, and what the kernel spent on those of each lease.
func (p *Part) Samples(ctx context.Context, of report.Scope) ([]report.Sample, error) {
	list, err := p.linkSamples(ctx, of)
	if p.Measured == nil || err != nil {
		return list, err
	}
	return append(list, report.KernelOfLinks(list, p.Measured())...), nil
}

func (p *Part) linkSamples(ctx context.Context, of report.Scope) ([]report.Sample, error) {
	if left, err := bpf.Left(p.host, hop.LinksPart); err != nil || !left {
		return nil, err
	}
	r, err := p.programs()
	if err != nil {
		return nil, err
	}
	t := &p.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.read(r, p); err != nil {
		return nil, err
	}
	return t.samples(of, p.wireCounts(ctx, t.all), p), nil
}

// beyond lists the ends by which frames leave that enter by an end: those of
// all paths behind a port. The paths that are beside the first at a host have
// no end of their own where they join the port.
func beyond(ends map[place]uint32, records map[uint32]vxlinkRecord, at place) []uint32 {
	list := []uint32{ends[opposite(ends, records, at)]}
	for path := 1; path < branches && at.pathOf()>>pathBits == 0; path++ {
		far := place{at.lease, at.pathOf() | path<<pathBits, 1 - at.end}
		other, near := opposite(ends, records, far.across()), opposite(ends, records, far)
		_, apart := ends[near]
		if slot, ok := ends[other]; ok && !apart {
			list = append(list, slot)
		}
	}
	return list
}

// across is the place at the other end.
func (at place) across() place {
	at.end = 1 - at.end
	return at
}
