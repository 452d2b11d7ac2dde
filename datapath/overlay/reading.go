package overlay

import (
	"errors"
	"fmt"
	"net"

	"github.com/cilium/ebpf"

	"sublet/plan"
	"sublet/report"
)

// reading is one look at all entries and their counters, by few calls, and what
// samples have in common from one to the next.
type reading struct {
	entries map[uint32]overlayEntry
	ids     []uint32 // room for a call
	each    []overlayEntry
	slots   []uint32 // room for counters
	values  []uint64
	words   int // of the counters of a slot, and of them on one processor
	per     int
	heads   map[uint32]head
	hops    map[[6]byte]string
}

// head is a sample without figures, and what it was made of.
type head struct {
	item   plan.Overlay
	hop    string
	sample report.Sample
}

// entriesOfCall is how many entries a call reads.
const entriesOfCall = 1024

// read looks at a table.
func (r *reading) read(t *table) error {
	if err := r.readEntries(t.objects.Entries); err != nil {
		return fmt.Errorf("read the overlay's entries: %w", err)
	}
	last := uint32(0)
	for id, e := range r.entries {
		if e.Slot >= t.objects.Hits.MaxEntries() {
			return fmt.Errorf("entry %d of the overlay has counters %d, and there are %d", id, e.Slot, t.objects.Hits.MaxEntries())
		}
		last = max(last, e.Slot)
	}
	if err := r.readCounts(t.objects.Hits, int(last)+1); err != nil {
		return fmt.Errorf("read the overlay's counters: %w", err)
	}
	return nil
}

func (r *reading) readEntries(entries *ebpf.Map) error {
	if r.ids == nil {
		r.ids, r.each = make([]uint32, entriesOfCall), make([]overlayEntry, entriesOfCall)
		r.entries = make(map[uint32]overlayEntry)
	}
	clear(r.entries)
	cursor := new(ebpf.MapBatchCursor)
	for {
		n, err := entries.BatchLookup(cursor, r.ids, r.each, nil)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
		for i, id := range r.ids[:n] {
			r.entries[id] = r.each[i]
		}
		if err != nil {
			return nil // that was the last of them
		}
	}
}

func (r *reading) readCounts(hits *ebpf.Map, slots int) error {
	if len(r.slots) != slots {
		processors, err := ebpf.PossibleCPU()
		if err != nil {
			return err
		}
		r.per = int(hits.ValueSize() / 8)
		r.words = r.per * processors
		r.slots, r.values = make([]uint32, slots), make([]uint64, slots*r.words)
	}
	_, err := hits.BatchLookup(new(ebpf.MapBatchCursor), r.slots, r.values, nil)
	if errors.Is(err, ebpf.ErrKeyNotExist) { // these were all
		return nil
	}
	return err
}

// counts adds up what the processors counted at a slot, of the words of
// overlayCounts.
func (r *reading) counts(slot uint32) (sum overlayCounts) {
	for at := r.values[int(slot)*r.words:][:r.words]; len(at) > 0; at = at[r.per:] {
		sum.Sent, sum.SentBytes = sum.Sent+at[0], sum.SentBytes+at[1]
		sum.Received, sum.ReceivedBytes = sum.Received+at[2], sum.ReceivedBytes+at[3]
		for cause := range sum.Drops {
			sum.Drops[cause] += at[4+cause]
		}
	}
	return sum
}

// hop is an Ethernet address as text, made once.
func (r *reading) hop(address [6]byte) string {
	text, ok := r.hops[address]
	if !ok {
		if r.hops == nil || len(r.hops) >= entriesOfCall {
			r.hops = make(map[[6]byte]string)
		}
		text = net.HardwareAddr(address[:]).String()
		r.hops[address] = text
	}
	return text
}

// sample is that of an entry, with the labels of the reading before if they are the
// same.
func (r *reading) sample(id uint32, s report.TunnelState) report.Sample {
	h, ok := r.heads[id]
	if !ok || h.item != s.Overlay || h.hop != s.NextHop {
		if r.heads == nil {
			r.heads = make(map[uint32]head)
		}
		h = head{item: s.Overlay, hop: s.NextHop, sample: s.Sample(outgoing())}
		r.heads[id] = h
	}
	return s.SampleAs(h.sample, outgoing())
}

// forget lets go of what is kept of items that went.
func (r *reading) forget(items map[uint32]plan.Overlay) {
	for id := range r.heads {
		if _, there := items[id]; !there {
			delete(r.heads, id)
		}
	}
}
