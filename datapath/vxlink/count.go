package vxlink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"sublet/datapath/bpf"
	"sublet/datapath/hop"
	"sublet/datapath/impair"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
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
	if of.Network != "" {
		return p.samplesOf(ctx, r, of)
	}
	t := &p.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.read(r, p); err != nil {
		return nil, err
	}
	return t.samples(of, p.wireCounts(ctx, t.all), p.latency), nil
}

// samplesOf reads what is of one lease, slot by slot, and all its queues.
func (p *Part) samplesOf(ctx context.Context, r *programs, of report.Scope) ([]report.Sample, error) {
	all, err := r.all()
	if err != nil {
		return nil, err
	}
	t := &p.tally
	t.mu.Lock()
	err = t.read(r, p)
	large := t.largest()
	t.mu.Unlock()
	if err != nil {
		return nil, err
	}
	c := reading{part: p, programs: r, all: all, classes: make(map[uint32]map[uint32]queued), wires: p.wireCounts(ctx, all), large: large}
	leases := make(map[vnet.LeaseID]map[place]uint32)
	for slot, record := range all {
		at := record.place()
		if at.index == trunkIndex || at.isDetour() || record.Standby != 0 || !of.Holds(at.lease) {
			continue
		}
		if leases[at.lease] == nil {
			leases[at.lease] = make(map[place]uint32)
		}
		leases[at.lease][at] = slot
	}
	var list []report.Sample
	for _, ends := range leases {
		if list, err = c.lease(list, ends); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b report.Sample) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Labels[report.LabelDirection], b.Labels[report.LabelDirection]))
	})
	return list, nil
}

// reading is one look at all counters.
type reading struct {
	*programs
	part    *Part
	all     map[uint32]vxlinkRecord
	classes map[uint32]map[uint32]queued // by uplink and class; read once
	wires   map[place]impair.Counts      // of impaired ports
	large   map[uint32]uint64            // by slot, see large
}

// lease appends the samples of a lease, whose ends are given with their slots.
func (c *reading) lease(list []report.Sample, ends map[place]uint32) ([]report.Sample, error) {
	lost, err := c.lost(ends)
	if err != nil {
		return nil, err
	}
	for at, slot := range ends {
		t, err := c.traffic(slot, c.all[slot], c.all[ends[opposite(ends, c.all, at)]])
		if err != nil {
			return nil, err
		}
		var q queued
		for _, other := range beyond(ends, c.all, at) {
			q = q.and(lost[other])
		}
		if t.Backlog = q.backlog; q.dropped > 0 {
			t.Drops["queue"] = q.dropped + c.large[slot]
		}
		c.impaired(at, &t)
		link := plan.VxLink{Lease: at.lease, Index: at.index & (1<<pathBits - 1), Path: at.pathOf() >> pathBits}
		t.Why = c.part.downOf(link)
		s := t.Sample(link)
		s.Latency(c.part.latency(tunnelsOf(c.all, beyond(ends, c.all, at))))
		list = append(list, s)
	}
	return list, nil
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

// traffic is that of frames that enter by one end and leave by another.
func (r *programs) traffic(slot uint32, in, out vxlinkRecord) (report.Traffic, error) {
	c, err := r.counts(slot)
	t := report.Traffic{
		Link: in.link(), Direction: vnet.Direction(in.End), First: in.IsTunnel == 0, Last: out.IsTunnel == 0,
		Packets: c.Packets, Bytes: c.Bytes, Drops: make(map[string]uint64),
	}
	for cause, name := range map[vxlinkDrop]string{vxlinkDropDROP_CLOSED: "closed", vxlinkDropDROP_STRANGER: "stranger"} {
		if n := c.Drops[cause]; n > 0 {
			t.Drops[name] = n
		}
	}
	return t, err
}

// lost counts, by slot, what the queue that frames leave an end by dropped: a
// port's token bucket or a tunnel's class.
func (c *reading) lost(ends map[place]uint32) (map[uint32]queued, error) {
	lost := make(map[uint32]queued)
	fabric, err := c.part.host.Dial(plan.Fabric(leaseOf(ends)))
	if errors.Is(err, os.ErrNotExist) {
		return lost, nil
	}
	if err != nil {
		return nil, err
	}
	defer fabric.Close()
	queues, err := fabric.Qdiscs()
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		if q.Index > bpf.FirstDevice && q.Parent == kernel.TCRoot {
			at := uint32(q.Index - bpf.FirstDevice)
			lost[at] = lost[at].and(queuedIn(q))
		}
	}
	return lost, c.lostInClasses(lost, ends)
}

// leaseOf is the lease of ends that are all of one.
func leaseOf(ends map[place]uint32) (id vnet.LeaseID) {
	for at := range ends {
		return at.lease
	}
	return id
}

func (c *reading) lostInClasses(lost map[uint32]queued, ends map[place]uint32) error {
	for _, slot := range ends {
		r := c.all[slot]
		if r.Minor == 0 {
			continue
		}
		classes, err := c.classesOf(r.Uplink)
		if err != nil {
			return err
		}
		lost[slot] = lost[slot].and(classes[handleOf(r.Minor)])
	}
	return nil
}

// classesOf reads what the classes of an uplink dropped and hold.
func (c *reading) classesOf(uplink uint32) (map[uint32]queued, error) {
	if classes := c.classes[uplink]; classes != nil {
		return classes, nil
	}
	home, err := c.part.host.Dial("")
	if err != nil {
		return nil, err
	}
	defer home.Close()
	list, err := home.Classes(int(uplink))
	if err != nil {
		return nil, err
	}
	classes := make(map[uint32]queued, len(list))
	for _, class := range list {
		classes[class.Handle] = queuedIn(class)
	}
	c.classes[uplink] = classes
	return classes, nil
}
