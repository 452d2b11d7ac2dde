package vxlink

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sublet/datapath/bpf"

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

// Traffic is what this host counted of a lease's links, by link and direction.
func (p *Part) Traffic(lease vnet.LeaseID) ([]report.Traffic, error) {
	if left, err := bpf.Left(p.host, bpf.Links); err != nil || !left {
		return nil, err
	}
	r, err := p.programs()
	if err != nil {
		return nil, err
	}
	all, err := r.all()
	if err != nil {
		return nil, err
	}
	ends := make(map[place]uint32)
	for slot, record := range all {
		if at := record.place(); at.lease == lease && at.index != trunkIndex {
			ends[at] = slot
		}
	}
	lost, err := p.lost(lease, all, ends)
	if err != nil {
		return nil, err
	}
	list := make([]report.Traffic, 0, len(ends))
	for at, slot := range ends {
		t, err := r.traffic(slot, all[slot], all[ends[place{lease, at.index, 1 - at.end}]])
		if err != nil {
			return nil, err
		}
		n := uint64(0)
		for _, other := range beyond(ends, at) {
			n += lost[other]
		}
		if n > 0 {
			t.Drops["queue"] = n
		}
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b report.Traffic) int {
		return cmp.Or(cmp.Compare(a.Link, b.Link), cmp.Compare(a.Direction, b.Direction))
	})
	return list, nil
}

// beyond lists the ends by which frames leave that enter by an end: those of
// all paths behind a port. The paths that are beside the first at a host have
// no end of their own where they join the port.
func beyond(ends map[place]uint32, at place) []uint32 {
	other := place{at.lease, at.index, 1 - at.end}
	list := []uint32{ends[other]}
	for path := 1; path < branches && at.index>>pathBits == 0; path++ {
		other.index = at.index | path<<pathBits
		_, apart := ends[place{at.lease, other.index, at.end}]
		if slot, ok := ends[other]; ok && !apart {
			list = append(list, slot)
		}
	}
	return list
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
func (p *Part) lost(lease vnet.LeaseID, all map[uint32]vxlinkRecord, ends map[place]uint32) (map[uint32]uint64, error) {
	lost := make(map[uint32]uint64)
	fabric, err := p.host.Dial(plan.Fabric(lease))
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
		if q.Index > firstDevice && q.Parent == kernel.TCRoot {
			lost[uint32(q.Index-firstDevice)] += uint64(q.Drops)
		}
	}
	return lost, p.lostInClasses(lost, all, ends)
}

func (p *Part) lostInClasses(lost map[uint32]uint64, all map[uint32]vxlinkRecord, ends map[place]uint32) error {
	home, err := p.host.Dial("")
	if err != nil {
		return err
	}
	defer home.Close()
	classes := make(map[uint32]map[uint32]uint32) // drops, by uplink and class
	for _, slot := range ends {
		r := all[slot]
		if r.Minor == 0 {
			continue
		}
		if classes[r.Uplink] == nil {
			list, err := home.Classes(int(r.Uplink))
			if err != nil {
				return err
			}
			classes[r.Uplink] = make(map[uint32]uint32, len(list))
			for _, c := range list {
				classes[r.Uplink][c.Handle] = c.Drops
			}
		}
		lost[slot] += uint64(classes[r.Uplink][kernel.Handle(1, r.Minor)])
	}
	return nil
}
