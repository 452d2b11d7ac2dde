package iplb

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// changed makes every processor look up its flows' paths anew.
func (t *Table) changed() error { return t.update(func(s *iplbState) { s.Generation++ }) }

// SetWiresCarryGSO says whether all wires to the other hosts are within this kernel: then
// no card cuts packets or computes their checksums, and headers cost less.
func (t *Table) SetWiresCarryGSO(is bool) error {
	return t.update(func(s *iplbState) {
		s.WiresGso = 0
		if is {
			s.WiresGso = 1
		}
	})
}

// update changes what the programs see at once. Who sends and who relays on a
// host are two writers, in two processes mostly.
func (t *Table) update(change func(*iplbState)) error {
	if t.pins == nil {
		return t.put(change)
	}
	return t.pins.Locked(func() error { return t.put(change) })
}

func (t *Table) put(change func(*iplbState)) error {
	var s iplbState
	if err := t.c.Maps["states"].Lookup(uint32(0), &s); err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	change(&s)
	if err := t.c.Maps["states"].Put(uint32(0), s); err != nil {
		return fmt.Errorf("put the state: %w", err)
	}
	return nil
}

// near is the bit of an address among a state's locals, as the program has it.
func near(address uint32) (word, bit uint32) {
	at := address * 0x9e3779b1 >> 20
	return at >> 6 & 63, at & 63
}

// mark is the bits of addresses.
func mark(addresses map[uint32]uint32) (bits [64]uint64) {
	for a := range addresses {
		word, bit := near(a)
		bits[word] |= 1 << bit
	}
	return bits
}

// unsettled is what flows carried since their entries in the flow table were
// brought up to date, some milliseconds ago at most unless they fell silent.
func (t *Table) unsettled() (map[iplbFlowKey]Load, error) {
	processors, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, err
	}
	most := int(t.c.Maps[iplbMapFlowCache].MaxEntries())
	keys, each := make([]uint32, most), make([]iplbCachedFlow, most*processors)
	var cursor ebpf.MapBatchCursor
	n, err := t.c.Maps[iplbMapFlowCache].BatchLookup(&cursor, keys, each, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, fmt.Errorf("read recent flows: %w", err)
	}
	late := make(map[iplbFlowKey]Load)
	for _, l := range each[:n*processors] {
		if l.Tracked != 0 && l.Packets != 0 {
			sum := late[l.Key]
			late[l.Key] = Load{sum.Packets + uint64(l.Packets), sum.Bytes + l.Bytes}
		}
	}
	return late, nil
}
