package vxlink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/hop"
	"sublet/datapath/impair"
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
	all     map[uint32]vxlinkRecord // by slot
	links   report.Counts           // without values
	ends    []tallied
	sorted  []int    // numbers of ends, as samples come
	keys    []uint32 // of slots, room for a reading
	values  []uint64 // of their counters
}

// tallied is an end by which frames enter a link.
type tallied struct {
	slot, link uint32 // link: number in the list
	at         place
	head       report.Sample // without counters
	queues     []queueAt     // that frames leave by: of several paths, several
	tunnels    []uint32      // numbers of those, that are tunnels
	packets    uint64        // at the last reading
	moved      time.Time     // when there were more than before
	queued                   // by the queues, then
	large      large
}

// queued is how many bytes left queues, how many packets they dropped, and the bytes that
// wait in them.
type queued struct{ sent, dropped, backlog uint64 }

func queuedIn(q kernel.Qdisc) queued {
	return queued{q.Bytes, uint64(q.Drops), uint64(q.Backlog)}
}

func (q queued) and(other queued) queued {
	return queued{q.sent + other.sent, q.dropped + other.dropped, q.backlog + other.backlog}
}

// settled is how long after frames moved their queues are still read: what was
// counted may be dropped a moment later.
const settled = time.Second

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
	if err := t.read(r, p); err != nil {
		return report.Counts{}, err
	}
	list := t.links
	list.Values = make([]report.LinkSums, len(list.Links))
	for i := range t.ends {
		e := &t.ends[i]
		sum, v := t.sum(e.slot), &list.Values[e.link]
		v[0], v[1], v[2] = v[0]+sum.Packets, v[1]+sum.Bytes, v[2]+e.dropped
		if l, ok := p.latency(e.tunnels).Counted(int(e.link)); ok {
			list.Latencies = append(list.Latencies, l)
		}
	}
	return list, nil
}

// samples are those of the links that a scope holds. They share their labels from
// one reading to the next.
func (t *tally) samples(of report.Scope, wires map[place]impair.Counts, p *Part) []report.Sample {
	list := make([]report.Sample, 0, len(t.ends))
	room := make([]report.Counter, 0, 2*len(t.ends)) // most are idle: they have no more counters
	for _, i := range t.sorted {
		e := &t.ends[i]
		if !of.Holds(e.at.lease) || t.all[e.slot].Standby != 0 {
			continue
		}
		sum, s := t.sum(e.slot), e.head
		n := len(room)
		s.Counters = room[n : n : n+2]
		room = room[:n+2]
		s.Count(report.Entered, report.Packets, sum.Packets)
		s.Count(report.Entered, report.Bytes, sum.Bytes)
		wire := wires[e.at]
		closed, stranger, queue := sum.Drops[vxlinkDropDROP_CLOSED], sum.Drops[vxlinkDropDROP_STRANGER], e.dropped+wire.Overflowed
		if closed+stranger+queue+wire.Lost+wire.Late > 0 {
			s.CountBy(report.Dropped, map[string]uint64{"closed": closed, "stranger": stranger, "queue": queue, "impaired": wire.Lost, "late": wire.Late})
		}
		s.Gauge(report.Backlog, report.Bytes, e.backlog)
		s.Latency(p.latency(e.tunnels))
		s.Why = p.downOf(e.at.vxlink())
		list = append(list, s)
	}
	return list
}

// vxlink is the link whose end is at a place.
func (at place) vxlink() plan.VxLink {
	return plan.VxLink{Lease: at.lease, Index: at.index & (1<<pathBits - 1), Path: at.pathOf() >> pathBits}
}

// headOf is what samples of an end have in common.
func headOf(at place, in, out vxlinkRecord) report.Sample {
	t := report.Traffic{Link: in.link(), Direction: vnet.Direction(in.End), First: in.IsTunnel == 0, Last: out.IsTunnel == 0}
	link := at.vxlink()
	link.Standby = in.Standby != 0
	s := t.Sample(link)
	s.Counters = nil
	return s
}

// layOut learns which slots there are, in their order.
func (t *tally) layOut(r *programs, p *Part) error {
	all, err := r.all()
	if err != nil {
		return err
	}
	slots, last := make(map[place]uint32, len(all)), uint32(0)
	for slot, record := range all {
		slots[record.place()], last = slot, max(last, slot)
	}
	// An end that stays goes on from its last reading; a new one is read at once, so that
	// its first drops have something to be compared with.
	now, before := time.Now(), make(map[uint32]tallied, len(t.ends))
	for _, e := range t.ends {
		before[e.slot] = e
	}
	t.ends = t.ends[:0]
	list := report.NewCounts()
	for slot := range last + 1 {
		in, ok := all[slot]
		if at := in.place(); ok && at.index != trunkIndex && !at.isDetour() {
			other := slots[opposite(slots, all, at)]
			link := list.Link(report.LinkWay{
				Lease: at.lease, Link: in.link(), Direction: vnet.Direction(in.End), Enters: in.IsTunnel == 0, Leaves: all[other].IsTunnel == 0,
			})
			e := tallied{slot: slot, link: uint32(link), at: at, head: headOf(at, in, all[other]), moved: now}
			if _, impaired := slots[place{at.lease, at.index, at.end + 2}]; !impaired { // else frames are lost on the way to the queue
				e.large = largeAt(all[other], p.began(slot))
			}
			if b := before[slot]; b.at == at && t.of == r {
				e.packets, e.moved, e.dropped, e.backlog = b.packets, b.moved, b.dropped, b.backlog
				if b.large.full == e.large.full {
					e.large = b.large
				}
			}
			far := beyond(slots, all, at)
			e.tunnels = tunnelsOf(all, far)
			for _, other := range far {
				if q := queueOf(in, all[other], other); q.index != 0 {
					e.queues = append(e.queues, q)
				}
			}
			t.ends = append(t.ends, e)
		}
	}
	t.all, t.links = all, list.Done()
	t.sorted = t.sorted[:0]
	for i := range t.ends {
		t.sorted = append(t.sorted, i)
	}
	slices.SortFunc(t.sorted, func(i, j int) int {
		return cmp.Or(cmp.Compare(t.ends[i].head.Key, t.ends[j].head.Key), cmp.Compare(t.ends[i].at.end, t.ends[j].at.end))
	})
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

// read brings counters, and what queues dropped, to what there is now.
func (t *tally) read(r *programs, p *Part) error {
	if now := r.changes.Load(); t.of != r || t.changes != now {
		if err := t.layOut(r, p); err != nil {
			return err
		}
		t.of, t.changes = r, now
	}
	cursor := new(ebpf.MapBatchCursor)
	if _, err := t.of.counters.BatchLookup(cursor, t.keys, t.values, nil); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("read the counters of links: %w", err)
	}
	queues, now, undercounts := make(queues), time.Now(), p.undercounts()
	for i := range t.ends {
		e := &t.ends[i]
		if packets := t.sum(e.slot).Packets; packets != e.packets {
			e.packets, e.moved = packets, now
		}
		if len(e.queues) == 0 || now.Sub(e.moved) > settled && e.backlog == 0 {
			continue
		}
		e.queued = queued{}
		for _, q := range e.queues {
			n, err := queues.at(p.host, q)
			if err != nil {
				return err
			}
			e.queued = e.and(n)
		}
		sum := t.sum(e.slot)
		if !undercounts {
			sum.Uncounted = 0
		}
		e.dropped += e.large.add(sum, e.queued)
	}
	return nil
}

// sum adds up what the processors counted at a slot, of the words of vxlinkCounts.
func (t *tally) sum(slot uint32) (sum vxlinkCounts) {
	words := len(t.values) / len(t.keys)
	each := words / t.of.processors
	for at := t.values[int(slot)*words:][:words]; len(at) > 0; at = at[each:] {
		sum.Packets, sum.Bytes, sum.Uncounted = sum.Packets+at[0], sum.Bytes+at[1], sum.Uncounted+at[2]
		for cause := range sum.Drops {
			sum.Drops[cause] += at[3+cause]
		}
	}
	return sum
}

// queues are what they dropped and hold. A device's classes are read once, and so are the queues of
// a fabric, which have the device 0 here.
type queues map[queueAt]map[queueAt]queued

func (d queues) at(host *kernel.Host, q queueAt) (queued, error) {
	where := queueAt{fabric: q.fabric}
	if q.class != 0 {
		where.index = q.index
	}
	if d[where] == nil {
		read, err := readQueued(host, q)
		if err != nil {
			return queued{}, err
		}
		d[where] = read
	}
	return d[where][q], nil
}

func readQueued(host *kernel.Host, q queueAt) (map[queueAt]queued, error) {
	found := make(map[queueAt]queued)
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
			found[queueAt{index: q.index, class: class.Handle}] = queuedIn(class)
		}
		return found, err
	}
	list, err := c.Qdiscs()
	for _, queue := range list {
		if queue.Parent == kernel.TCRoot {
			at := queueAt{fabric: q.fabric, index: queue.Index}
			found[at] = found[at].and(queuedIn(queue))
		}
	}
	return found, err
}
