package vxlink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/hop"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// tally reads what links have counted every second at little cost: which slots are
// of which link is kept until a record changes, counters are read by one call, and
// queues only where frames have moved.
type tally struct {
	mu      sync.Mutex
	of      *programs
	changes uint64
	links   report.Counts // without values
	ends    []tallied
	keys    []uint32 // of slots, room for a reading
	values  []uint64 // of their counters
}

// tallied is an end by which frames enter a link.
type tallied struct {
	slot, link uint32 // link: number in the list
	queue      queueAt
	packets    uint64 // at the last reading
	moving     bool   // there were more then than before
	dropped    uint64 // by the queue, then
}

// queueAt is the queue that frames leave a link by: a class of an uplink, or the
// root of a device in a fabric. None: frames that leave here were shaped elsewhere.
type queueAt struct {
	fabric string
	index  int
	class  uint32
}

// Counts are those of all links on this host.
func (p *Part) Counts(context.Context) (report.Counts, error) {
	if left, err := bpf.Left(p.host, hop.LinksPart); err != nil || !left {
		return report.Counts{}, err
	}
	r, err := p.programs()
	if err != nil {
		return report.Counts{}, err
	}
	t := &p.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := r.changes.Load(); t.of != r || t.changes != now {
		if err := t.layOut(r); err != nil {
			return report.Counts{}, err
		}
		t.of, t.changes = r, now
	}
	return t.read(p.host)
}

// layOut learns which slots there are, in their order.
func (t *tally) layOut(r *programs) error {
	all, err := r.all()
	if err != nil {
		return err
	}
	slots, last := make(map[place]uint32, len(all)), uint32(0)
	for slot, record := range all {
		slots[record.place()], last = slot, max(last, slot)
	}
	t.ends = t.ends[:0]
	list := report.NewCounts()
	for slot := range last + 1 {
		in, ok := all[slot]
		if at := in.place(); ok && at.index != trunkIndex && !at.isDetour() {
			other := slots[place{at.lease, at.index, 1 - at.end}]
			link := list.Link(report.LinkWay{
				Lease: at.lease, Link: in.link(), Direction: vnet.Direction(in.End), Enters: in.IsTunnel == 0, Leaves: all[other].IsTunnel == 0,
			})
			t.ends = append(t.ends, tallied{slot: slot, link: uint32(link), queue: queueOf(in, all[other], other)})
		}
	}
	t.links = list.Done()
	t.keys, t.values = make([]uint32, last+1), make([]uint64, int(last+1)*r.processors*int(r.counters.ValueSize()/8))
	return nil
}

// queueOf is the queue between an end and the other one.
func queueOf(in, out vxlinkRecord, slot uint32) queueAt {
	switch {
	case slot == 0:
	case out.IsTunnel != 0:
		return queueAt{index: int(out.Uplink), class: handleOf(out.Minor)}
	case in.IsTunnel == 0:
		return queueAt{fabric: plan.Fabric(out.place().lease), index: number(slot)}
	}
	return queueAt{}
}

// read adds up what there is now.
func (t *tally) read(host *kernel.Host) (report.Counts, error) {
	cursor := new(ebpf.MapBatchCursor)
	if _, err := t.of.counters.BatchLookup(cursor, t.keys, t.values, nil); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return report.Counts{}, fmt.Errorf("read the counters of links: %w", err)
	}
	list := t.links
	list.Values = make([]report.LinkSums, len(list.Links))
	queues := make(drops)
	for i := range t.ends {
		e := &t.ends[i]
		packets, bytes := t.sum(e.slot)
		moves := packets != e.packets
		if e.queue.index != 0 && (moves || e.moving) { // what moved last may have been dropped since
			n, err := queues.at(host, e.queue)
			if err != nil {
				return report.Counts{}, err
			}
			e.dropped = n
		}
		e.packets, e.moving = packets, moves
		v := &list.Values[e.link]
		v[0], v[1], v[2] = v[0]+packets, v[1]+bytes, v[2]+e.dropped
	}
	return list, nil
}

// sum adds up what the processors counted at a slot: its first two words, as in
// vxlinkCounts.
func (t *tally) sum(slot uint32) (packets, bytes uint64) {
	words := len(t.values) / len(t.keys)
	each := words / t.of.processors
	for at := range slices.Chunk(t.values[int(slot)*words:][:words], each) {
		packets, bytes = packets+at[0], bytes+at[1]
	}
	return packets, bytes
}

// drops are of queues. A device's classes are read once, and so are the queues of
// a fabric, which have the device 0 here.
type drops map[queueAt]map[queueAt]uint64

func (d drops) at(host *kernel.Host, q queueAt) (uint64, error) {
	where := queueAt{fabric: q.fabric}
	if q.class != 0 {
		where.index = q.index
	}
	if d[where] == nil {
		read, err := readDrops(host, q)
		if err != nil {
			return 0, err
		}
		d[where] = read
	}
	return d[where][q], nil
}

func readDrops(host *kernel.Host, q queueAt) (map[queueAt]uint64, error) {
	found := make(map[queueAt]uint64)
	c, err := host.Dial(q.fabric)
	if errors.Is(err, os.ErrNotExist) {
		return found, nil // the lease goes
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if q.class != 0 {
		list, err := c.Classes(q.index)
		for _, class := range list {
			found[queueAt{index: q.index, class: class.Handle}] = uint64(class.Drops)
		}
		return found, err
	}
	list, err := c.Qdiscs()
	for _, queue := range list {
		if queue.Parent == kernel.TCRoot {
			found[queueAt{fabric: q.fabric, index: queue.Index}] += uint64(queue.Drops)
		}
	}
	return found, err
}
