package iplb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

// Outcomes names what became of packets.
var Outcomes = bpf.EnumNames(loadIplb, "outcome", "OUTCOME_")

// Counts reads how often each outcome was.
func (t *Table) Counts() (map[string]uint64, error) { return countsIn(t.c.Maps["outcomes"]) }

// CountsOf reads them of a host's programs, and leaves the table alone; an error
// that is os.ErrNotExist: it has none.
func CountsOf(host *kernel.Host) (map[string]uint64, error) {
	pins, err := bpf.OpenPins(host, "iplb")
	if err != nil {
		return nil, err
	}
	defer pins.Close()
	m, err := ebpf.LoadPinnedMap(pins.Path("outcomes"), &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("open the counters: %w", err)
	}
	defer m.Close()
	return countsIn(m)
}

// countsIn reads the outcomes that a map has: another version's may be fewer.
func countsIn(m *ebpf.Map) (map[string]uint64, error) {
	counts := make(map[string]uint64, len(Outcomes()))
	for i, name := range Outcomes()[:min(len(Outcomes()), int(m.MaxEntries()))] {
		var each []uint64
		if err := m.Lookup(uint32(i), &each); err != nil {
			return nil, fmt.Errorf("read counter %s: %w", name, err)
		}
		for _, n := range each {
			counts[name] += n
		}
	}
	return counts, nil
}

// Load is what a path has carried, in packets on the wire and bytes of frames
// before headers were added.
type Load struct{ Packets, Bytes uint64 }

// Load of the i-th path of a rule.
func (t *Table) Load(prefix netip.Prefix, i int) (Load, error) {
	_, id, err := t.member(prefix, i)
	if err != nil {
		return Load{}, err
	}
	return t.load(id)
}

// load of the path of a number.
func (t *Table) load(id uint32) (Load, error) {
	var each []iplbCounts
	if err := t.c.Maps["loads"].Lookup(id, &each); err != nil {
		return Load{}, fmt.Errorf("read the load of path %d: %w", id, err)
	}
	var sum Load
	for _, c := range each {
		sum.Packets += c.Packets
		sum.Bytes += c.Bytes
	}
	return sum, nil
}

// Carried is how many packets each path has carried, by the numbers of Watch,
// read at once, up to the highest in use.
func (t *Table) Carried() ([]uint64, error) {
	processors, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, err
	}
	most := 0
	for id := range t.taken {
		most = max(most, int(id)+1)
	}
	if most == 0 {
		return nil, nil
	}
	keys, each := make([]uint32, most), make([]iplbCounts, most*processors)
	var cursor ebpf.MapBatchCursor
	n, err := t.c.Maps["loads"].BatchLookup(&cursor, keys, each, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, fmt.Errorf("read loads: %w", err)
	}
	packets := make([]uint64, most)
	for i := range n {
		for _, c := range each[i*processors : (i+1)*processors] {
			packets[keys[i]] += c.Packets
		}
	}
	return packets, nil
}

// clearLoad forgets what a path has carried, before another gets its number.
func (t *Table) clearLoad(id uint32) error {
	processors, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	if err := t.c.Maps["loads"].Put(id, make([]iplbCounts, processors)); err != nil {
		return fmt.Errorf("clear the load of path %d: %w", id, err)
	}
	return nil
}

// FlowKey names a flow: addresses, ports where the protocol has some.
type FlowKey struct {
	Source, Target netip.AddrPort
	Protocol       uint8
}

// Flow is one entry of the flow table: the index of its path among its
// prefix's, and what it has carried.
type Flow struct {
	FlowKey
	Path int
	Load
}

// flowBatch is how many flows one call to the kernel reads.
const flowBatch = 4096

// eachFlow visits the flow table. Entries that change while it is read may be
// visited twice or not at all.
func (t *Table) eachFlow(visit func(iplbFlowKey, iplbFlow)) error {
	keys, values := make([]iplbFlowKey, flowBatch), make([]iplbFlow, flowBatch)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := t.c.Maps["flows"].BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			visit(keys[i], values[i])
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil // the end
		}
		if err != nil {
			return fmt.Errorf("read flows: %w", err)
		}
	}
}

// Flows lists the flows of a rule that the table knows.
func (t *Table) Flows(prefix netip.Prefix) ([]Flow, error) {
	all, err := t.AllFlows(0)
	return all[prefix], err
}

// AllFlows lists the flows that the table knows, by the first prefix of their
// rule. Flows that sent nothing for longer than idle are taken out; 0 keeps
// all.
func (t *Table) AllFlows(idle time.Duration) (map[netip.Prefix][]Flow, error) {
	now, err := kernelNow()
	if err != nil {
		return nil, err
	}
	late, err := t.unsettled()
	if err != nil {
		return nil, err
	}
	index := make(map[uint32]int)
	for _, members := range t.members {
		for i, id := range members {
			index[id] = i
		}
	}
	bySet := make(map[uint32][]Flow)
	var old []iplbFlowKey
	err = t.eachFlow(func(k iplbFlowKey, f iplbFlow) {
		if idle > 0 && now-int64(f.Last) > int64(idle) {
			old = append(old, k)
		} else if i, here := index[f.Path]; here && slices.Contains(t.members[f.Set], f.Path) {
			bySet[f.Set] = append(bySet[f.Set], Flow{keyFrom(k), i, Load{f.Packets + late[k].Packets, f.Bytes + late[k].Bytes}})
		}
	})
	flows := make(map[netip.Prefix][]Flow, len(t.rules))
	for p, set := range t.rules {
		flows[p] = bySet[set]
	}
	return flows, errors.Join(err, t.forgetFlows(old))
}

func (t *Table) forgetFlows(old []iplbFlowKey) error {
	for _, k := range old {
		if err := t.c.Maps["flows"].Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("forget a flow: %w", err)
		}
	}
	return nil
}

// kernelNow is the clock of the programs, in nanoseconds.
func kernelNow() (int64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return now.Nano(), nil
}

// Move puts a flow on another of its rule's paths.
func (t *Table) Move(prefix netip.Prefix, k FlowKey, path int) error {
	_, id, err := t.member(prefix, path)
	if err != nil {
		return err
	}
	var f iplbFlow
	key := keyTo(k)
	if err := t.c.Maps["flows"].Lookup(key, &f); err != nil {
		return fmt.Errorf("find the flow to %s: %w", k.Target, err)
	}
	f.Path = id
	if err := t.c.Maps["flows"].Update(key, f, ebpf.UpdateExist); err != nil {
		return fmt.Errorf("move the flow to %s: %w", k.Target, err)
	}
	return t.changed()
}

// keyFrom and keyTo convert to words as they lie in packets.
func keyFrom(k iplbFlowKey) FlowKey {
	var ports [4]byte
	binary.NativeEndian.PutUint32(ports[:], k.Ports)
	return FlowKey{
		Source:   netip.AddrPortFrom(addrOf(k.Source), binary.BigEndian.Uint16(ports[:])),
		Target:   netip.AddrPortFrom(addrOf(k.Target), binary.BigEndian.Uint16(ports[2:])),
		Protocol: uint8(k.Protocol),
	}
}

func keyTo(k FlowKey) iplbFlowKey {
	source, target := k.Source.Addr().As4(), k.Target.Addr().As4()
	ports := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, k.Source.Port()), k.Target.Port())
	return iplbFlowKey{
		Source: binary.NativeEndian.Uint32(source[:]), Target: binary.NativeEndian.Uint32(target[:]),
		Ports: binary.NativeEndian.Uint32(ports), Protocol: uint32(k.Protocol),
	}
}
