package iplb

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Outcomes names what became of packets, in the order of the program's.
var Outcomes = []string{
	"spread", "native", "too-big", "refused", "relayed",
	"drop-source", "drop-checksum", "drop-fragment", "drop-malformed", "drop-nested", "drop-outside", "drop-congested",
}

// Counts reads how often each outcome was.
func (t *Table) Counts() (map[string]uint64, error) {
	counts := make(map[string]uint64, len(Outcomes))
	for i, name := range Outcomes {
		var each []uint64
		if err := t.c.Maps["outcomes"].Lookup(uint32(i), &each); err != nil {
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

// Load of the path over relays.
func (t *Table) Load(relays []netip.Addr) (Load, error) {
	id, known := t.paths[fmt.Sprint(relays)]
	if !known {
		return Load{}, fmt.Errorf("no rule has a path over %v", relays)
	}
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

// Flows lists the flows to a prefix that the table knows.
func (t *Table) Flows(prefix netip.Prefix) ([]Flow, error) {
	set, known := t.sets[prefix]
	if !known {
		return nil, nil
	}
	index := make(map[uint32]int)
	for i, id := range t.members[set] {
		index[id] = i
	}
	var flows []Flow
	var key iplbFlowKey
	var value iplbFlow
	it := t.c.Maps["flows"].Iterate()
	for it.Next(&key, &value) {
		if i, here := index[value.Path]; here && value.Set == set {
			flows = append(flows, Flow{keyFrom(key), i, Load{value.Packets, value.Bytes}})
		}
	}
	return flows, it.Err()
}

// Move puts a flow on another of its prefix's paths.
func (t *Table) Move(prefix netip.Prefix, k FlowKey, path int) error {
	members := t.members[t.sets[prefix]]
	if _, known := t.sets[prefix]; !known || path < 0 || path >= len(members) {
		return fmt.Errorf("%s has no path %d", prefix, path)
	}
	var f iplbFlow
	key := keyTo(k)
	if err := t.c.Maps["flows"].Lookup(key, &f); err != nil {
		return fmt.Errorf("find the flow to %s: %w", k.Target, err)
	}
	f.Path = members[path]
	return t.c.Maps["flows"].Put(key, f)
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
