// Package iplb lets a host choose the paths of its packets through a fabric of
// plain IP routers: the packet gets one IPv4 header per relay, which the relays
// take off (Nakamura, thesis, section 5.3). See README.md.
package iplb

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Limits of the table.
const (
	MaxRelays = vnet.MaxRelays
	MaxPaths  = len(iplbSet{}.Paths) // of a prefix
)

// The plan's names of modes (plan.SpreadMode) and forms (plan.Relaying), in the
// order of the programs' numbers.
var (
	modes = bpf.EnumNames(loadIplb, "mode", "MODE_")
	forms = bpf.EnumNames(loadIplb, "form", "FORM_")
)

// defaultGap of flowlets is more than the difference of two paths' delays in
// one building, so that a flowlet does not overtake the one before it.
const defaultGap = 500 * time.Microsecond

// Table is what one host does to packets it sends. It is not safe for
// concurrent use.
type Table struct {
	Source  netip.Addr // of outer headers: the host's own address towards the fabric
	Source6 netip.Addr // of those of SRv6

	c       *ebpf.Collection
	pins    *bpf.Pins
	paths   map[pathKey]uint32      // the number of a path
	taken   map[uint32]pathKey      // by number
	next    uint32                  // where to look for a free number of a path
	sets    map[netip.Prefix]uint32 // where a prefix leads
	rules   map[netip.Prefix]uint32 // the set of a rule, by its first prefix
	members map[uint32][]uint32     // paths of a set
	tunnels map[uint32]uint32       // the path of a tunnel
}

// pathKey names a path: the same relays lead to other prefixes over other
// links, which are up or down for themselves.
type pathKey struct {
	set    uint32
	relays string
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
	c, err := load(pins, spec)
	if err != nil {
		return nil, err
	}
	t, err := open(c, source)
	if t != nil {
		t.pins = pins
	}
	return t, err
}

// renamed are the pins that versions before 0.1 called otherwise.
var renamed = []bpf.Renamed{
	{From: "recent", To: iplbMapFlowCache}, {From: "known", To: iplbMapAclCache}, {From: "inside", To: iplbMapAllowedInner},
}

// load is what a sender and a relay of one host share, though they begin at once.
func load(pins *bpf.Pins, spec *ebpf.CollectionSpec) (c *ebpf.Collection, err error) {
	err = pins.Locked(func() error {
		var renewed []string
		if c, renewed, err = pins.Load(spec, renamed...); err != nil {
			return err
		}
		if slices.Contains(renewed, "paths") || slices.Contains(renewed, "sets") {
			err = forget(c)
		}
		if err != nil {
			c.Close()
		}
		return err
	})
	return c, err
}

// forget empties what leads to paths: another version's, which are not there any
// more.
func forget(c *ebpf.Collection) error {
	return errors.Join(
		clearBut[iplbPrefix, uint32](c.Maps["prefixes"], nil),
		clearBut[uint32, uint32](c.Maps["tunnels"], nil),
		clearBut[uint32, iplbSet](c.Maps["sets"], nil),
		clearBut[iplbFlowKey, iplbFlow](c.Maps["flows"], nil),
	)
}

// open reads what is in the tables.
func open(c *ebpf.Collection, source netip.Addr) (*Table, error) {
	t := &Table{
		Source: source, c: c, paths: make(map[pathKey]uint32), taken: make(map[uint32]pathKey),
		sets: make(map[netip.Prefix]uint32), rules: make(map[netip.Prefix]uint32), members: make(map[uint32][]uint32), tunnels: make(map[uint32]uint32),
	}
	var key iplbPrefix
	var set uint32
	for it := c.Maps["prefixes"].Iterate(); it.Next(&key, &set); {
		t.sets[prefixOf(key)] = set
	}
	for _, id := range t.sets {
		if err := t.readSet(id); err != nil {
			return nil, err
		}
	}
	return t, t.readTunnels()
}

// readSet reads one set's paths.
func (t *Table) readSet(id uint32) error {
	if t.members[id] != nil {
		return nil
	}
	var s iplbSet
	if err := t.c.Maps["sets"].Lookup(id, &s); err != nil {
		return fmt.Errorf("read set %d: %w", id, err)
	}
	t.rules[prefixOf(s.Name)] = id
	for _, path := range s.Paths[:min(int(s.Count), MaxPaths)] {
		var p iplbPath
		if err := t.c.Maps["paths"].Lookup(path, &p); err != nil {
			return fmt.Errorf("read path %d: %w", path, err)
		}
		key := pathKey{id, relaysOf(p)}
		t.paths[key], t.taken[path] = path, key
		t.members[id] = append(t.members[id], path)
	}
	return nil
}

// Close lets go of the table; programs and what is in it stay.
func (t *Table) Close() { t.c.Close() }

// Transmit is the program for the egress of devices towards the fabric.
func (t *Table) Transmit() *ebpf.Program { return t.c.Programs["iplb_tx"] }

// Relay is the program for the ingress of devices from the fabric.
func (t *Table) Relay() *ebpf.Program { return t.c.Programs["iplb_relay"] }

// Echo is the program by which a sender's own probes come back, for the
// ingress of devices from the fabric.
func (t *Table) Echo() *ebpf.Program { return t.c.Programs["iplb_echo"] }

// Check says what is wrong with a spread, or does not fit into a table.
func Check(s plan.Spread) error {
	if err := s.Check(); err != nil {
		return err
	}
	if len(s.Paths) > MaxPaths {
		return fmt.Errorf("%s has %d paths: 1 to %d are possible", s.Prefix, len(s.Paths), MaxPaths)
	}
	total := uint64(0)
	seen := make(map[string]bool)
	for _, p := range s.Paths {
		if err := checkRelays(p.Relays); err != nil {
			return fmt.Errorf("check paths to %s: %w", s.Prefix, err)
		}
		if seen[fmt.Sprint(p.Relays)] {
			return fmt.Errorf("%s: two paths over %v", s.Prefix, p.Relays)
		}
		seen[fmt.Sprint(p.Relays)] = true
		total += uint64(max(p.Weight, 1))
	}
	if total > 1<<31 {
		return fmt.Errorf("%s: weights add up to %d: at most %d", s.Prefix, total, 1<<31)
	}
	return nil
}

func checkRelays(relays []netip.Addr) error {
	if len(relays) > MaxRelays {
		return fmt.Errorf("a path of %d relays: at most %d are possible", len(relays), MaxRelays)
	}
	if i := slices.IndexFunc(relays, nobodys); i >= 0 {
		return fmt.Errorf("relay %s is not the address of one switch", relays[i])
	}
	return nil
}

// nobodys says that an address is not of one node in a fabric.
func nobodys(a netip.Addr) bool {
	return a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func prefixesOf(s plan.Spread) []netip.Prefix { return append([]netip.Prefix{s.Prefix}, s.Also...) }

// Set makes the rule of a spread. Packets meet the old paths or the new ones,
// nothing in between, and flows stay on paths that are in both.
func (t *Table) Set(spread plan.Spread) error {
	if err := Check(spread); err != nil {
		return err
	}
	set, known := t.rules[spread.Prefix]
	if !known {
		set = free(func(id uint32) bool { return t.members[id] != nil })
	}
	if spread.By == plan.BySRv6 && !t.Source6.Is6() {
		return fmt.Errorf("%s: SRv6 takes an IPv6 source", spread.Prefix)
	}
	old := t.members[set]
	s, members, err := t.newSet(set, spread)
	if err != nil {
		return errors.Join(err, t.sweep(members, old))
	}
	if err := t.c.Maps["sets"].Put(set, s); err != nil {
		return fmt.Errorf("put the paths to %s: %w", spread.Prefix, err)
	}
	t.rules[spread.Prefix], t.members[set] = set, members
	return errors.Join(t.lead(prefixesOf(spread), set), t.changed(), t.sweep(old, members))
}

// newSet makes the paths of a spread, and what the program has of them.
func (t *Table) newSet(set uint32, spread plan.Spread) (s iplbSet, members []uint32, err error) {
	s = iplbSet{
		Name: keyOf(spread.Prefix), Mode: iplbMode(slices.Index(modes(), string(cmp.Or(spread.Mode, plan.PerFlow)))),
		Count: uint32(len(spread.Paths)), Gap: uint64(cmp.Or(time.Duration(spread.Gap), defaultGap)), Slots: sharesOf(spread.Paths),
	}
	for i, p := range spread.Paths {
		id, up, err := t.path(pathKey{set, fmt.Sprint(p.Relays)}, p.Relays, spread.By)
		if err != nil {
			return s, members, err
		}
		s.Paths[i], members = id, append(members, id)
		if up {
			s.Alive |= 1 << i
		}
	}
	return s, members, nil
}

// lead makes these prefixes, and no others, lead to a set.
func (t *Table) lead(prefixes []netip.Prefix, set uint32) error {
	for _, p := range prefixes {
		if err := t.c.Maps["prefixes"].Put(keyOf(p), set); err != nil {
			return fmt.Errorf("put %s: %w", p, err)
		}
		t.sets[p] = set
	}
	for p, its := range t.sets {
		if its == set && !slices.Contains(prefixes, p) {
			if err := t.forget(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget takes one prefix out.
func (t *Table) forget(p netip.Prefix) error {
	if err := t.c.Maps["prefixes"].Delete(keyOf(p)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove %s: %w", p, err)
	}
	delete(t.sets, p)
	return nil
}

// Remove takes a rule out: packets to its prefixes leave as they are.
func (t *Table) Remove(p netip.Prefix) error {
	set, known := t.rules[p]
	if !known {
		return nil
	}
	if err := t.lead(nil, set); err != nil {
		return err
	}
	if err := t.c.Maps["sets"].Delete(set); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove the paths to %s: %w", p, err)
	}
	if err := t.changed(); err != nil {
		return err
	}
	old := t.members[set]
	delete(t.members, set)
	delete(t.rules, p)
	return t.sweep(old, nil)
}

// Rules lists the first prefixes of the rules.
func (t *Table) Rules() []netip.Prefix { return slices.Collect(maps.Keys(t.rules)) }

// SetUp says whether the i-th path of a rule, named by its first prefix, works.
// Flows leave one that does not with their next packet.
func (t *Table) SetUp(prefix netip.Prefix, i int, up bool) error {
	set, id, err := t.member(prefix, i)
	if err != nil {
		return err
	}
	if up { // nobody is sent to a path that does not let them pass
		err = errors.Join(t.setPassing(id, up), t.setAlive(set, i, up))
	} else {
		err = errors.Join(t.setAlive(set, i, up), t.setPassing(id, up))
	}
	return errors.Join(err, t.changed())
}

// setPassing lets flows stay on a path, or not.
func (t *Table) setPassing(id uint32, up bool) error {
	var p iplbPath
	if err := t.c.Maps["paths"].Lookup(id, &p); err != nil {
		return fmt.Errorf("read path %d: %w", id, err)
	}
	p.Up = 0
	if up {
		p.Up = 1
	}
	if err := t.c.Maps["paths"].Put(id, p); err != nil {
		return fmt.Errorf("put path %d: %w", id, err)
	}
	return nil
}

// member is the number of the i-th path to a prefix, and of its set.
func (t *Table) member(prefix netip.Prefix, i int) (set, id uint32, err error) {
	set, known := t.rules[prefix]
	if !known || i < 0 || i >= len(t.members[set]) {
		return 0, 0, fmt.Errorf("%s has no path %d", prefix, i)
	}
	return set, t.members[set][i], nil
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

// path finds or makes a path, and says whether it is up.
func (t *Table) path(key pathKey, relays []netip.Addr, form plan.Relaying) (id uint32, up bool, err error) {
	if id, known := t.paths[key]; known {
		var p iplbPath
		if err := t.c.Maps["paths"].Lookup(id, &p); err != nil {
			return 0, false, fmt.Errorf("read path %d: %w", id, err)
		}
		again := t.template(relays, form) // source and form may be others
		again.Up = p.Up
		return id, p.Up != 0, t.c.Maps["paths"].Put(id, again)
	}
	most := t.c.Maps["paths"].MaxEntries()
	if len(t.taken) >= int(most) {
		return 0, false, fmt.Errorf("a host has at most %d paths", most)
	}
	for _, used := t.taken[t.next]; used; _, used = t.taken[t.next] {
		t.next = (t.next + 1) % most
	}
	id = t.next
	if err := t.c.Maps["paths"].Put(id, t.template(relays, form)); err != nil {
		return 0, false, fmt.Errorf("put the path over %v: %w", relays, err)
	}
	t.paths[key], t.taken[id] = id, key
	return id, true, nil
}

// free is the smallest number that is not taken.
func free(taken func(uint32) bool) uint32 {
	for id := uint32(0); ; id++ {
		if !taken(id) {
			return id
		}
	}
}

// sweep takes old paths out that are not among the new ones.
func (t *Table) sweep(old, fresh []uint32) error {
	for _, id := range old {
		if slices.Contains(fresh, id) {
			continue
		}
		key := t.taken[id]
		if err := t.sweepNumber(id); err != nil {
			return err
		}
		delete(t.paths, key)
	}
	return nil
}

// sweepNumber frees the number of a path.
func (t *Table) sweepNumber(id uint32) error {
	if err := t.c.Maps["paths"].Put(id, iplbPath{}); err != nil {
		return fmt.Errorf("remove a path: %w", err)
	}
	if err := t.c.Maps["probes"].Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove a path's probe: %w", err)
	}
	delete(t.taken, id)
	return t.clearLoad(id)
}
