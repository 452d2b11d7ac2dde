package overlay

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// front is the device of a table as it is now.
type front struct {
	index    int
	target   int // where what came by a tunnel goes, by deliver
	deliver  uint8
	ethernet [12]byte // in front of what comes without
}

// frontOf finds the device of a table: one end of a pair of devices, which has no
// address, so that it is none of those by which the host is reached.
func (p *Part) frontOf(t *plan.TunnelTable) (front, error) {
	l, err := p.home.LinkByName(t.Device)
	refused := func(format string, args ...any) (front, error) {
		return front{}, plan.BadTable{Err: fmt.Errorf("device "+t.Device+" "+format, args...)}
	}
	switch {
	case kernel.NotFound(err):
		return refused("is not there: make it, with ip link add %s type veth peer name NAME", t.Device)
	case err != nil:
		return front{}, err
	case l.Kind != "veth":
		return refused("is no end of a pair of devices: make one, with ip link add NAME type veth peer name OTHER")
	case !l.Up:
		return refused("is down: set it up, with ip link set %s up", t.Device)
	}
	for _, item := range p.items {
		if item.Interface == t.Device {
			return refused("has tunnels of leases")
		}
	}
	all, err := p.home.Addresses(0)
	if err != nil {
		return front{}, err
	}
	local := false
	for _, a := range all {
		if local = local || a.Local == t.Local; a.Index == l.Index && !a.Local.IsLinkLocalUnicast() {
			return refused("has the address %s of the host: take it away, or give it to the other end of the pair", a.Local)
		}
	}
	if !local {
		return refused("is to send from %s, which is no address of the host", t.Local)
	}
	if _, err := p.home.LinkByName(t.Interface); err != nil {
		return refused("is to send by interface %s, which is not there", t.Interface)
	}
	f := front{index: l.Index, target: l.Index, deliver: deliverPeer}
	other := l.Hardware
	if l.PeerNS < 0 { // in this namespace, where nothing can be handed over to a peer
		peer, err := p.home.LinkByIndex(l.Peer)
		if err != nil {
			return front{}, fmt.Errorf("find the other end of %s: %w", t.Device, err)
		}
		f.target, f.deliver, other = peer.Index, deliverIngress, peer.Hardware
	}
	copy(f.ethernet[copy(f.ethernet[:], other[:]):], l.Hardware[:])
	return f, nil
}

// DELIVER_ in format.h.
const deliverPeer, deliverIngress = 0, 1

func (t *ownTable) row() *protocol {
	row, _ := protocolOf(t.Encapsulation) // Check knows them all
	return row
}

func (t *ownTable) in(p *Part) *ebpf.Map {
	if t.Longest {
		return p.table.objects.Prefixes
	}
	return p.table.objects.Names
}

func nameOf(profile uint32, id plan.Identifier) overlayName {
	return overlayName{Prefix: 32 + uint32(id.Bits), Profile: inMemory32(profile), Id: id.Bytes}
}

// entryFor is a table's entry by its present next hop.
func (p *Part) entryFor(t *ownTable, e plan.TunnelEntry) overlayEntry {
	slot, ok := t.slots[e.ID]
	if !ok {
		slot = t.slot
	}
	return entryOf(t.row(), uint32(t.Number), addressing{
		nextHop: p.nextHops[t.path(e)], local: t.Local, remote: e.To, ports: t.ports(),
	}, slot)
}

// ports are the source ports of a table's packets. Those by the host's stack have a
// lease's, since one device sends both.
func (t *ownTable) ports() [2]uint16 {
	if t.row().stack {
		return [2]uint16{bpf.PortLeaseFirst, bpf.PortLeaseCount}
	}
	return [2]uint16{bpf.PortFlowFirst, bpf.PortFlowCount}
}

// prepare writes a table under a new profile, which no device goes by yet.
func (p *Part) prepare(t *ownTable) error {
	if err := p.resolveFor(t); err != nil {
		return err
	}
	if err := p.countersFor(t); err != nil {
		return err
	}
	p.profile++
	t.profile = p.profile
	for _, e := range t.Entries {
		if err := t.in(p).Put(nameOf(t.profile, e.ID), p.entryFor(t, e)); err != nil {
			return fmt.Errorf("write entry %s: %w", e.ID, err)
		}
	}
	if t.row().stack {
		if err := p.setStackDevice(); err != nil {
			return err
		}
	}
	if err := p.takeIn(t); err != nil {
		return err
	}
	if err := p.receive(t.Interface); err != nil {
		return err
	}
	return p.attach(frontPin(t.Device), t.front.index, p.table.objects.OverlayFront)
}

// flip has the device go by the table's profile.
func (p *Part) flip(t *ownTable) error {
	f := overlayFront{Profile: t.profile, Offset: uint16(t.Offset), Bits: uint16(t.Bits)}
	if t.Longest {
		f.Longest = 1
	}
	if err := p.table.objects.Fronts.Put(uint32(t.front.index), f); err != nil {
		return fmt.Errorf("have %s go by table %s: %w", t.Device, t.Name, err)
	}
	t.reason = ""
	return nil
}

// resolveFor looks up next hops that nobody has needed before.
func (p *Part) resolveFor(t *ownTable) error {
	r, err := newResolver(p.home)
	if err != nil {
		return err
	}
	for _, e := range t.Entries {
		if _, known := p.nextHops[t.path(e)]; known {
			continue
		}
		if p.nextHops[t.path(e)], err = r.nextHop(t.path(e)); err != nil {
			return err
		}
	}
	if p.kept == nil {
		p.kept = make(map[neighbour]bool)
	}
	for n := range r.kept {
		p.kept[n] = true
	}
	return nil
}

// countersFor gives a table and its entries counters, as far as there are some.
func (p *Part) countersFor(t *ownTable) (err error) {
	if t.slot == 0 {
		if t.slot, err = p.table.slot(); err != nil {
			return err
		}
	}
	taken := len(t.slots)
	for _, other := range p.tables {
		if other.Name != t.Name {
			taken += len(other.slots)
		}
	}
	for _, e := range t.Entries {
		if _, has := t.slots[e.ID]; has || taken >= ownSlots {
			continue
		}
		slot, err := p.table.slot()
		if err != nil {
			return err
		}
		if slot == 0 {
			return nil
		}
		t.slots[e.ID] = slot
		taken++
	}
	return nil
}

// ends are the receiving ends of a table: one for its number, with all its hosts as
// senders, or one for each host.
func (t *ownTable) ends(uplink int) map[uint64]overlayTunnelEnd {
	row := t.row()
	end := overlayTunnelEnd{
		Local: address(t.Local), Uplink: uint32(uplink), Target: uint32(t.front.target), Slot: t.slot, Deliver: t.front.deliver, Ethernet: t.front.ethernet,
	}
	if row.id != none {
		end.Many = 1
		return map[uint64]overlayTunnelEnd{uint64(row.kind)<<32 | uint64(t.Number): end}
	}
	all := make(map[uint64]overlayTunnelEnd)
	for _, e := range t.Entries {
		end.Remote = address(e.To)
		all[uint64(row.kind)<<32|uint64(senderNumber(end.Remote))] = end
	}
	return all
}

func (t *ownTable) senders() []overlaySender {
	row := t.row()
	if row.id == none {
		return nil
	}
	var all []overlaySender
	for _, e := range t.Entries {
		all = append(all, overlaySender{End: uint64(row.kind)<<32 | uint64(t.Number), Address: address(e.To)})
	}
	return all
}

// takeIn lets packets of a table's hosts in.
func (p *Part) takeIn(t *ownTable) error {
	uplink, err := p.home.LinkByName(t.Interface)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", t.Interface, err)
	}
	o := p.table.objects
	for _, s := range t.senders() {
		if err := o.Senders.Put(s, uint32(1)); err != nil {
			return fmt.Errorf("write a sender: %w", err)
		}
	}
	for key, end := range t.ends(uplink.Index) {
		if err := o.Ends.Put(key, end); err != nil {
			return fmt.Errorf("write a receiving end: %w", err)
		}
	}
	return o.Locals.Put(address(t.Local), uint32(1))
}

// tableEnds are the keys of all receiving ends of tables.
func (p *Part) tableEnds() map[uint64]bool {
	all := make(map[uint64]bool)
	for _, t := range p.tables {
		for key := range t.ends(0) {
			all[key] = true
		}
	}
	return all
}

// refreshTables brings tables to their devices, and entries to their next hops.
func (p *Part) refreshTables(changed map[path]bool) {
	wrote := false
	for _, t := range p.tables {
		f, err := p.frontOf(&t.TunnelTable)
		switch {
		case err != nil:
			t.reason = err.Error()
		case t.profile == 0 || f != t.front || t.reason != "":
			t.front = f
			if err = p.prepare(t); err == nil {
				err = p.flip(t)
			}
			if err != nil {
				t.reason = err.Error()
			}
			wrote = true
		default:
			for _, e := range t.Entries {
				if changed[t.path(e)] {
					_ = t.in(p).Put(nameOf(t.profile, e.ID), p.entryFor(t, e)) // an audit looks
				}
			}
		}
	}
	if wrote {
		_ = p.sweepOwn() // what is left goes with the next change
	}
}

// auditTables writes tables anew that are not in the kernel as they shall be.
func (p *Part) auditTables() {
	for _, t := range p.tables {
		var f overlayFront
		found := p.table.objects.Fronts.Lookup(uint32(t.front.index), &f) == nil && f.Profile == t.profile
		on, err := p.table.pins.Attached(frontPin(t.Device), t.front.index, p.table.objects.OverlayFront)
		if found && on && err == nil && p.written(t) {
			continue
		}
		t.reason = "it is being written again"
		p.refreshTables(nil)
	}
}

// written says whether all of a table's entries are in the kernel.
func (p *Part) written(t *ownTable) bool {
	uplink, err := p.home.LinkByName(t.Interface)
	if err != nil {
		return true // that is not what is wrong with the table
	}
	on, err := p.table.pins.Attached(rxPin(t.Interface), uplink.Index, p.table.objects.OverlayRx)
	if err != nil || !on {
		return false
	}
	for _, e := range t.Entries {
		var have overlayEntry
		if t.in(p).Lookup(nameOf(t.profile, e.ID), &have) != nil || have != p.entryFor(t, e) {
			return false
		}
	}
	var one uint32
	for _, s := range t.senders() {
		if p.table.objects.Senders.Lookup(s, &one) != nil {
			return false
		}
	}
	for key, end := range t.ends(uplink.Index) {
		var have overlayTunnelEnd
		if p.table.objects.Ends.Lookup(key, &have) != nil || have != end {
			return false
		}
	}
	return true
}

// recall finds what an earlier process counted for a table.
func (p *Part) recall(t *ownTable) {
	l, err := p.home.LinkByName(t.Device)
	var f overlayFront
	if err != nil || p.table.objects.Fronts.Lookup(uint32(l.Index), &f) != nil {
		return
	}
	for key := range t.ends(0) {
		var end overlayTunnelEnd
		if p.table.objects.Ends.Lookup(key, &end) == nil {
			t.slot = end.Slot
		}
	}
	for _, e := range t.Entries {
		var have overlayEntry
		if t.in(p).Lookup(nameOf(f.Profile, e.ID), &have) == nil && have.Slot != t.slot {
			t.slots[e.ID] = have.Slot
			p.table.slots[have.Slot] = true
		}
	}
	p.table.slots[t.slot] = true
}

// lastProfile is the highest number in the kernel.
func (p *Part) lastProfile() (last uint32, err error) {
	for _, m := range []*ebpf.Map{p.table.objects.Names, p.table.objects.Prefixes} {
		err = errors.Join(err, eachName(m, func(n overlayName) { last = max(last, inMemory32(n.Profile)) }))
	}
	return last, err
}

func eachName(m *ebpf.Map, do func(overlayName)) error {
	var n overlayName
	var e overlayEntry
	all := m.Iterate()
	for all.Next(&n, &e) {
		do(n)
	}
	return all.Err()
}

// sweepOwn takes away what no table needs: entries under other profiles, devices,
// senders, receiving ends, counters.
func (p *Part) sweepOwn() error {
	if p.table == nil {
		return nil
	}
	profiles, fronts, senders := make(map[uint32]bool), make(map[uint32]bool), make(map[overlaySender]bool)
	slots := make(map[uint32]bool)
	for _, t := range p.tables {
		profiles[t.profile], fronts[uint32(t.front.index)] = true, true
		for _, s := range t.senders() {
			senders[s] = true
		}
		t.forget()
		slots[t.slot] = true
		for _, slot := range t.slots {
			slots[slot] = true
		}
	}
	o := p.table.objects
	for _, m := range []*ebpf.Map{o.Names, o.Prefixes} {
		var gone []overlayName
		if err := eachName(m, func(n overlayName) {
			if !profiles[inMemory32(n.Profile)] {
				gone = append(gone, n)
			}
		}); err != nil {
			return err
		}
		for _, n := range gone {
			var e overlayEntry
			if m.Lookup(n, &e) == nil && !slots[e.Slot] {
				p.table.free(e.Slot)
			}
			if err := missing(m.Delete(n)); err != nil {
				return err
			}
		}
	}
	if err := drop(o.Fronts, fronts); err != nil {
		return err
	}
	if err := drop(o.Senders, senders); err != nil {
		return err
	}
	return p.orphanEnds()
}

// forget gives up counters of entries that are no more.
func (t *ownTable) forget() {
	have := make(map[plan.Identifier]bool, len(t.Entries))
	for _, e := range t.Entries {
		have[e.ID] = true
	}
	for id := range t.slots {
		if !have[id] {
			delete(t.slots, id)
		}
	}
}

// drop deletes what is not wanted of a map whose values are at most as large as a front.
func drop[K comparable](m *ebpf.Map, wanted map[K]bool) error {
	var key K
	var gone []K
	value := make([]byte, m.ValueSize())
	all := m.Iterate()
	for all.Next(&key, &value) {
		if !wanted[key] {
			gone = append(gone, key)
		}
	}
	for _, key := range gone {
		if err := missing(m.Delete(key)); err != nil {
			return err
		}
	}
	return all.Err()
}
