// Package iplb lets a host choose the paths of its packets through a fabric of
// plain IP routers: the packet gets one IPv4 header per relay, which the relays
// take off (seed 003:715-855). See README.md.
package iplb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

// Mode is how a flow gets its path.
type Mode uint32

// Modes. Hash keeps no state: a flow's path follows from its addresses and
// ports. Flow begins like Hash and can be moved. Flowlet draws a path after
// each pause. RoundRobin gives new flows the paths in turn, for the subflows
// of MPTCP.
const (
	Hash Mode = iota
	PerFlow
	Flowlet
	RoundRobin
)

// Limits of the table.
const (
	MaxRelays = 8
	MaxPaths  = 64 // of a prefix
)

// Path is one list of relays, in the order in which they are visited.
type Path struct {
	Relays []netip.Addr
	Weight uint32 // share among the paths of a prefix; 0 counts as 1
}

// Rule says how packets to a prefix are spread.
type Rule struct {
	Prefix netip.Prefix
	Mode   Mode
	Gap    time.Duration // of Flowlet
	Paths  []Path
}

// Table is what one host does to packets it sends. It is not safe for
// concurrent use.
type Table struct {
	Source netip.Addr // of outer headers: the host's own address towards the fabric

	c       *ebpf.Collection
	paths   map[string]uint32 // by relays: the number of the path
	sets    map[netip.Prefix]uint32
	members map[uint32][]uint32 // paths of a set
}

// Open loads the table of a host, with what is in it, and the programs.
func Open(host *kernel.Host, source netip.Addr) (*Table, error) {
	if !source.Is4() {
		return nil, fmt.Errorf("source %s: outer headers are IPv4", source)
	}
	pins, err := bpf.OpenPins(host, "iplb")
	if err != nil {
		return nil, err
	}
	spec, err := loadIplb()
	if err != nil {
		return nil, err
	}
	c, _, err := pins.Load(spec)
	if err != nil {
		return nil, err
	}
	return open(c, source)
}

// open reads what is in the tables.
func open(c *ebpf.Collection, source netip.Addr) (*Table, error) {
	t := &Table{Source: source, c: c, paths: make(map[string]uint32), sets: make(map[netip.Prefix]uint32), members: make(map[uint32][]uint32)}
	var key iplbPrefix
	var set uint32
	for it := c.Maps["prefixes"].Iterate(); it.Next(&key, &set); {
		t.sets[prefixOf(key)] = set
	}
	for _, id := range t.sets {
		var s iplbSet
		if err := c.Maps["sets"].Lookup(id, &s); err != nil {
			return nil, fmt.Errorf("read set %d: %w", id, err)
		}
		for _, path := range s.Paths[:min(s.Count, MaxPaths)] {
			var p iplbPath
			if err := c.Maps["paths"].Lookup(path, &p); err != nil {
				return nil, fmt.Errorf("read path %d: %w", path, err)
			}
			t.paths[relaysOf(p)] = path
			t.members[id] = append(t.members[id], path)
		}
	}
	return t, nil
}

// Close lets go of the table; programs and what is in it stay.
func (t *Table) Close() { t.c.Close() }

// Transmit is the program for the egress of devices towards the fabric.
func (t *Table) Transmit() *ebpf.Program { return t.c.Programs["iplb_tx"] }

// Relay is the program for the ingress of devices from the fabric.
func (t *Table) Relay() *ebpf.Program { return t.c.Programs["iplb_relay"] }

// check refuses a rule before anything is changed.
func (r Rule) check() error {
	if !r.Prefix.IsValid() || !r.Prefix.Addr().Is4() || r.Prefix != r.Prefix.Masked() {
		return fmt.Errorf("%s is not an IPv4 prefix", r.Prefix)
	}
	if len(r.Paths) == 0 || len(r.Paths) > MaxPaths {
		return fmt.Errorf("%s has %d paths: 1 to %d are possible", r.Prefix, len(r.Paths), MaxPaths)
	}
	if r.Mode > RoundRobin {
		return fmt.Errorf("%s: there is no mode %d", r.Prefix, r.Mode)
	}
	total := uint64(0)
	for _, p := range r.Paths {
		if len(p.Relays) == 0 || len(p.Relays) > MaxRelays {
			return fmt.Errorf("%s: a path of %d relays: 1 to %d are possible", r.Prefix, len(p.Relays), MaxRelays)
		}
		if i := slices.IndexFunc(p.Relays, func(a netip.Addr) bool { return !a.Is4() }); i >= 0 {
			return fmt.Errorf("%s: relay %s is not an IPv4 address", r.Prefix, p.Relays[i])
		}
		total += uint64(max(p.Weight, 1))
	}
	if total > 1<<31 {
		return fmt.Errorf("%s: weights add up to %d: at most %d", r.Prefix, total, 1<<31)
	}
	return nil
}

// Set makes a rule. Packets meet the old paths or the new ones, nothing in
// between, and flows stay on paths that are in both.
func (t *Table) Set(r Rule) error {
	if err := r.check(); err != nil {
		return err
	}
	s := iplbSet{Mode: uint32(r.Mode), Count: uint32(len(r.Paths)), Gap: uint64(r.Gap), Slots: slotsOf(r.Paths)}
	members := make([]uint32, len(r.Paths))
	for i, p := range r.Paths {
		id, up, err := t.path(p.Relays)
		if err != nil {
			return err
		}
		s.Paths[i], members[i] = id, id
		if up {
			s.Alive |= 1 << i
		}
	}
	set, known := t.sets[r.Prefix]
	if !known {
		set = t.free(func(id uint32) bool { return t.members[id] != nil })
	}
	if err := t.c.Maps["sets"].Put(set, s); err != nil {
		return fmt.Errorf("put the paths to %s: %w", r.Prefix, err)
	}
	t.members[set] = members
	if err := t.c.Maps["prefixes"].Put(keyOf(r.Prefix), set); err != nil {
		return fmt.Errorf("put %s: %w", r.Prefix, err)
	}
	t.sets[r.Prefix] = set
	return t.sweep()
}

// Remove takes a prefix out: its packets leave as they are.
func (t *Table) Remove(p netip.Prefix) error {
	set, known := t.sets[p]
	if !known {
		return nil
	}
	if err := t.c.Maps["prefixes"].Delete(keyOf(p)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove %s: %w", p, err)
	}
	delete(t.sets, p)
	if err := t.c.Maps["sets"].Delete(set); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove the paths to %s: %w", p, err)
	}
	delete(t.members, set)
	return t.sweep()
}

// SetUp says whether a path works. Flows leave one that does not with their
// next packet.
func (t *Table) SetUp(relays []netip.Addr, up bool) error {
	id, known := t.paths[fmt.Sprint(relays)]
	if !known {
		return fmt.Errorf("no rule has a path over %v", relays)
	}
	p := t.template(relays)
	if !up {
		p.Up = 0
	}
	if err := t.c.Maps["paths"].Put(id, p); err != nil {
		return fmt.Errorf("put the path over %v: %w", relays, err)
	}
	for set, members := range t.members {
		for i, member := range members {
			if member != id {
				continue
			}
			if err := t.setAlive(set, i, up); err != nil {
				return err
			}
		}
	}
	return nil
}

// setAlive changes the bit of a set's i-th path.
func (t *Table) setAlive(set uint32, i int, up bool) error {
	var s iplbSet
	if err := t.c.Maps["sets"].Lookup(set, &s); err != nil {
		return fmt.Errorf("read set %d: %w", set, err)
	}
	s.Alive &^= 1 << i
	if up {
		s.Alive |= 1 << i
	}
	return t.c.Maps["sets"].Put(set, s)
}

// slotsOf deals the slots to paths in proportion to their weights, at least one
// to each, in turns: neighbouring slots belong to different paths.
func slotsOf(paths []Path) (slots [1024]uint8) {
	total := uint64(0)
	for _, p := range paths {
		total += uint64(max(p.Weight, 1))
	}
	given := make([]uint64, len(paths))
	for slot := range slots {
		best, most := 0, int64(-1<<62)
		for i, p := range paths {
			// What it should have by now less what it has, in 1/total slots.
			due := int64(uint64(slot+1)*uint64(max(p.Weight, 1))) - int64(given[i]*total)
			if given[i] == 0 && len(slots)-slot <= len(paths)-i {
				due = 1 << 62 // its last chance
			}
			if due > most {
				best, most = i, due
			}
		}
		given[best]++
		slots[slot] = uint8(best)
	}
	return slots
}

// path finds or makes the path over relays, and says whether it is up.
func (t *Table) path(relays []netip.Addr) (id uint32, up bool, err error) {
	key := fmt.Sprint(relays)
	if id, known := t.paths[key]; known {
		var p iplbPath
		err := t.c.Maps["paths"].Lookup(id, &p)
		return id, p.Up != 0, err
	}
	taken := make(map[uint32]bool, len(t.paths))
	for _, id := range t.paths {
		taken[id] = true
	}
	id = t.free(func(id uint32) bool { return taken[id] })
	if err := t.c.Maps["paths"].Put(id, t.template(relays)); err != nil {
		return 0, false, fmt.Errorf("put the path over %v: %w", relays, err)
	}
	t.paths[key] = id
	return id, true, nil
}

// free is the smallest number that is not taken.
func (t *Table) free(taken func(uint32) bool) uint32 {
	for id := uint32(0); ; id++ {
		if !taken(id) {
			return id
		}
	}
}

// sweep takes paths out that no set has.
func (t *Table) sweep() error {
	used := make(map[uint32]bool)
	for _, members := range t.members {
		for _, id := range members {
			used[id] = true
		}
	}
	for relays, id := range t.paths {
		if used[id] {
			continue
		}
		if err := t.c.Maps["paths"].Put(id, iplbPath{}); err != nil {
			return fmt.Errorf("remove a path: %w", err)
		}
		delete(t.paths, relays)
	}
	return nil
}

// outerTTL is more than any fabric has hops.
const outerTTL = 64

// template is all headers of a path. Every one leads to its relay, and carries
// IPv4: the next header, or the packet.
func (t *Table) template(relays []netip.Addr) iplbPath {
	p := iplbPath{Up: 1, Count: uint32(len(relays))}
	for i, relay := range relays {
		h := p.Headers[i][:]
		const dontFragment = 0x40
		h[0], h[6], h[8], h[9] = 0x45, dontFragment, outerTTL, 4
		copy(h[12:], t.Source.AsSlice())
		copy(h[16:], relay.AsSlice())
	}
	return p
}

// relaysOf reads the relays back out of a template, as a key of Table.paths.
func relaysOf(p iplbPath) string {
	var relays []netip.Addr
	for i := range min(p.Count, MaxRelays) {
		relays = append(relays, netip.AddrFrom4([4]byte(p.Headers[i][16:20])))
	}
	return fmt.Sprint(relays)
}

// keyOf is a prefix as the kernel's trie has it.
func keyOf(p netip.Prefix) iplbPrefix {
	a := p.Addr().As4()
	return iplbPrefix{Bits: uint32(p.Bits()), Address: binary.NativeEndian.Uint32(a[:])}
}

func prefixOf(k iplbPrefix) netip.Prefix {
	return netip.PrefixFrom(addrOf(k.Address), int(k.Bits))
}

// addrOf is an address as it lies in memory.
func addrOf(word uint32) netip.Addr {
	var a [4]byte
	binary.NativeEndian.PutUint32(a[:], word)
	return netip.AddrFrom4(a)
}
