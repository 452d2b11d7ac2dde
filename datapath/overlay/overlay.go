// Package overlay is a host's overlay forwarding table: one entry for each
// tunnel, which has the complete outer headers of its packets, so that one
// look-up replaces those of tunnel, outer route and outer neighbour, and one
// pass adds all headers, without a second trip through the host's stack.
//
//	fabric: trunk =veth=> X ingress [overlay_tx: mark -> entry, headers] -> uplink's queue
//	uplink ingress [overlay_rx: check, strip, mark] =peer of X=> fabric: trunk
//
// X is the host's end of a lease's trunk (plan.Trunk), made by vxlink, which
// says by a frame's mark to which tunnel it goes. X has no address and is up
// only while overlay_tx is on it, which lets nothing through to the host.
//
// Entries follow the host: see follow.go.
//
// Sources: R. Nakamura, "Improving Packet Transport in Virtual Networking by
// Encapsulation Techniques" (thesis, section 4.3); RFC 7348 (VXLAN), 6040 (ECN),
// 2983 (DSCP), 6935 and 6936 (UDP checksums over IPv6).
package overlay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Part does the section overlay. While there are entries it keeps them true
// to the host's routes and neighbours.
type Part struct {
	// WiresCarryGSO says that the wires between this host and all others take large
	// packets as they are (GSO), as pairs of devices within one kernel do, and
	// that the agents there say so too. Datagrams sent in large pieces then stay
	// large up to the receiver; see decap.go. Set it before the first Do or
	// Observe.
	WiresCarryGSO bool
	// Changed is called when Problems may be others; nil: nobody asks. Set it
	// before the first Do or Observe. It must not call the part.
	Changed func()

	// TablesFile keeps the operator's own tables; "": they end with the kernel's. Set it
	// before the first Do or Observe.
	TablesFile string

	host *kernel.Host

	mu       sync.Mutex
	table    *table       // nil: nothing is there
	home     *kernel.Conn // in the host's namespace, while there is a table
	decaps   bool         // there is a decap device
	stacks   bool         // there may be a stack device
	items    map[uint32]plan.Overlay
	nextHops map[path]nextHop
	kept     map[neighbour]bool
	reading  reading
	tables   map[string]*ownTable // the operator's
	profile  uint32               // the last number that one of them got
	unread   error                // why those of TablesFile are not known
	stop     chan struct{}        // ends follow
	done     sync.WaitGroup
}

// New makes the part for one host. Close it when done.
func New(host *kernel.Host) *Part {
	return &Part{host: host, items: make(map[uint32]plan.Overlay), nextHops: make(map[path]nextHop)}
}

// Kinds is overlay.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindOverlay} }

// Close stops following the host. What is pinned stays and forwards.
func (p *Part) Close() {
	p.mu.Lock()
	stop := p.stop
	p.stop = nil
	p.mu.Unlock()
	if stop != nil {
		close(stop)
	}
	p.done.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut(func(t *table) error { t.close(); return nil })
}

// shut closes the table by how, and what goes with it.
func (p *Part) shut(how func(*table) error) error {
	if p.table == nil {
		return nil
	}
	err := how(p.table)
	p.home.Close()
	p.table, p.home = nil, nil
	return err
}

// open opens or makes the table. Entries of an earlier layout are written
// anew before any program that reads them is attached.
func (p *Part) open() error {
	if p.table != nil {
		return nil
	}
	home, err := p.host.Dial("")
	if err != nil {
		return err
	}
	t, renewed, err := openTable(p.host)
	if err != nil {
		home.Close()
		return err
	}
	p.table, p.home, p.stacks = t, home, true
	if err = p.findDecapDevice(); err == nil {
		p.items, err = t.owners()
	}
	if err == nil {
		err = p.restore(renewed)
	}
	if err == nil {
		err = p.listen()
	}
	if err == nil {
		err = p.loadTables()
	}
	return err
}

// restore notes which counters are taken, and fills maps that are new.
func (p *Part) restore(renewed bool) error {
	for id := range p.items {
		e, ok, err := p.table.entry(id)
		if err != nil {
			return err
		}
		if ok {
			p.table.slots[e.Slot] = true
		}
	}
	if err := p.refresh(); err != nil || !renewed {
		return err
	}
	for _, item := range p.items {
		if err := p.write(item); err != nil {
			return err
		}
	}
	return nil
}

// Do makes one change.
func (p *Part) Do(_ context.Context, step plan.Step) error {
	item, ok := step.Item.(plan.Overlay)
	if !ok {
		return fmt.Errorf("overlay does not do %s", step.Item.Kind())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if step.Op == plan.Delete && p.table == nil {
		if left, err := bpf.Left(p.host, part); err != nil || !left {
			return err
		}
	}
	if err := p.open(); err != nil {
		return fmt.Errorf("overlay entry %s: %w", item.Key(), err)
	}
	do := p.set
	if step.Op == plan.Delete {
		do = p.delete
	}
	if err := do(item); err != nil {
		return fmt.Errorf("overlay entry %s: %w", item.Key(), err)
	}
	return nil
}

// set brings an entry, and what it needs, to what it shall be.
func (p *Part) set(item plan.Overlay) error {
	if err := validate(item); err != nil {
		return err
	}
	for _, t := range p.tables {
		if t.Device == item.Interface {
			return fmt.Errorf("interface %s is the device of the tunnel table %s: remove that (sublet overlay delete)", item.Interface, t.Name)
		}
	}
	if err := p.table.setOwner(item); err != nil {
		return fmt.Errorf("note it: %w", err)
	}
	was := p.items[uint32(item.VNI)]
	p.items[uint32(item.VNI)] = item
	if err := p.refresh(); err != nil {
		return err
	}
	if err := p.setDecapDevice(); err != nil {
		return err
	}
	row, _ := protocolOf(item.Protocol)
	if row.stack {
		if err := p.setStackDevice(); err != nil {
			return err
		}
	}
	if err := p.write(item); err != nil {
		return err
	}
	if err := p.clearEnd(was, endKey(row, item)); err != nil {
		return err
	}
	if err := p.receive(item.Interface); err != nil {
		return err
	}
	if err := p.setGSODevice(); err != nil {
		return err
	}
	return p.openTrunk(item.Lease)
}

func validate(item plan.Overlay) error {
	switch {
	case item.VNI == 0 || item.VNI > vnet.MaxVNI:
		return fmt.Errorf("number %d is none of a tunnel: from 1 to %d", item.VNI, vnet.MaxVNI)
	case !item.Local.IsValid() || item.Local.Is4() != item.Remote.Is4() || !item.Remote.IsValid():
		return fmt.Errorf("ends %s and %s are not of one IP version", item.Local, item.Remote)
	}
	_, err := protocolOf(item.Protocol)
	return err
}

// build makes the entry of an item, by its present next hop.
func (p *Part) build(item plan.Overlay, slot uint32) (overlayEntry, error) {
	row, err := protocolOf(item.Protocol)
	if err != nil {
		return overlayEntry{}, err
	}
	a := addressing{nextHop: p.nextHops[pathOf(item)], local: item.Local, remote: item.Remote, tos: bpf.TOSLease, whole: p.decaps}
	if item.BestEffort {
		a.tos = 0
	}
	a.ports = [2]uint16{bpf.PortFlowFirst, bpf.PortFlowCount}
	if row.rooted {
		a.ports = [2]uint16{bpf.PortLeaseFirst, bpf.PortLeaseCount}
	}
	if item.Source != 0 {
		a.ports = [2]uint16{item.Source, 1}
	}
	e := entryOf(row, uint32(item.VNI), a, slot)
	if item.MTU > 0 {
		e.Mtu = min(e.Mtu, uint16(item.MTU))
	}
	return e, nil
}

// write writes both ends of an item's tunnel: what it sends and what it takes.
func (p *Part) write(item plan.Overlay) error {
	id := uint32(item.VNI)
	have, ok, err := p.table.entry(id)
	if err != nil {
		return err
	}
	if !ok {
		if have.Slot, err = p.table.slot(); err != nil {
			return fmt.Errorf("clear its counters: %w", err)
		}
	}
	e, err := p.build(item, have.Slot)
	if err != nil {
		return err
	}
	key, end, err := p.end(item, have.Slot)
	if err != nil {
		return err
	}
	if err := p.table.objects.Locals.Put(end.Local, uint32(1)); err != nil {
		return fmt.Errorf("write address %s: %w", item.Local, err)
	}
	if err := p.table.objects.Ends.Put(key, end); err != nil {
		return fmt.Errorf("write its receiving end: %w", err)
	}
	if err := p.table.objects.Entries.Put(id, e); err != nil {
		return fmt.Errorf("write it: %w", err)
	}
	return nil
}

// end is the receiving end of an item's tunnel, and its key.
func (p *Part) end(item plan.Overlay, slot uint32) (uint64, overlayTunnelEnd, error) {
	row, err := protocolOf(item.Protocol)
	if err != nil {
		return 0, overlayTunnelEnd{}, err
	}
	uplink, err := p.home.LinkByName(item.Interface)
	if err != nil {
		return 0, overlayTunnelEnd{}, fmt.Errorf("find interface %s: %w", item.Interface, err)
	}
	trunk, err := p.home.LinkByName(plan.Trunk(item.Lease))
	if err != nil {
		return 0, overlayTunnelEnd{}, fmt.Errorf("find the trunk %s of %s: %w", plan.Trunk(item.Lease), item.Lease, err)
	}
	return endOf(row, item, uplink.Index, trunk.Index, slot)
}

// clearEnd removes the receiving end that was of an item, unless it is the one
// to keep.
func (p *Part) clearEnd(was plan.Overlay, keep uint64) error {
	row, err := protocolOf(was.Protocol)
	if err != nil || !was.Remote.IsValid() {
		return nil // it never had one
	}
	key := endKey(row, was)
	var e overlayTunnelEnd
	if key == keep || p.table.objects.Ends.Lookup(key, &e) != nil || e.Mark != uint32(was.VNI) {
		return nil
	}
	if err := missing(p.table.objects.Ends.Delete(key)); err != nil {
		return fmt.Errorf("remove a receiving end: %w", err)
	}
	return nil
}

// delete removes an entry, and what only it needed.
func (p *Part) delete(item plan.Overlay) error {
	id := uint32(item.VNI)
	have, ok, err := p.table.entry(id)
	if err != nil {
		return err
	}
	if err := p.clearEnd(p.items[id], 0); err != nil {
		return err
	}
	if ok {
		if err := missing(p.table.objects.Entries.Delete(id)); err != nil {
			return err
		}
		p.table.free(have.Slot)
	}
	if err := missing(p.table.objects.Owners.Delete(id)); err != nil {
		return err
	}
	delete(p.items, id)
	return p.sweep()
}

// sweep takes away what no entry needs: programs on trunks and interfaces,
// addresses, and with the last entry the table.
func (p *Part) sweep() error {
	if len(p.items) == 0 && len(p.tables) == 0 {
		for _, pin := range p.hooks("tx_") {
			p.lower(strings.TrimPrefix(pin, "tx_"))
		}
		p.keep(nil)
		p.nextHops = make(map[path]nextHop)
		if err := cmp.Or(p.removeGSODevice(), p.removeDecapDevice(), p.removeStackDevice()); err != nil {
			return err // with the table still there, Observe tries again
		}
		return p.shut((*table).remove)
	}
	if p.stacks && !p.needsStack() {
		if err := p.removeStackDevice(); err != nil {
			return err
		}
	}
	wanted := make(map[string]bool)
	locals := make(map[overlayIn6Addr]bool)
	for _, item := range p.items {
		wanted["tx_"+plan.Trunk(item.Lease)], wanted[rxPin(item.Interface)] = true, true
		locals[address(item.Local)] = true
	}
	for _, t := range p.tables {
		wanted[frontPin(t.Device)], wanted[rxPin(t.Interface)] = true, true
		locals[address(t.Local)] = true
	}
	for _, pin := range slices.Concat(p.hooks("tx_"), p.hooks("rx_"), p.hooks("front_")) {
		if wanted[pin] {
			continue
		}
		if trunk, ok := strings.CutPrefix(pin, "tx_"); ok {
			p.lower(trunk)
		}
		if err := p.table.pins.Remove(pin); err != nil {
			return err
		}
	}
	return p.sweepLocals(locals)
}

func (p *Part) sweepLocals(wanted map[overlayIn6Addr]bool) error {
	var gone []overlayIn6Addr
	var key overlayIn6Addr
	var value uint32
	all := p.table.objects.Locals.Iterate()
	for all.Next(&key, &value) {
		if !wanted[key] {
			gone = append(gone, key)
		}
	}
	for _, key := range gone {
		if err := missing(p.table.objects.Locals.Delete(key)); err != nil {
			return err
		}
	}
	return all.Err()
}

// hooks lists the pinned links of one direction.
func (p *Part) hooks(prefix string) []string {
	var found []string
	names, _ := p.table.pins.Names()
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			found = append(found, name)
		}
	}
	return found
}

// rxPin names the link on a physical interface, frontPin that on the device of a table;
// pins have no dots.
func rxPin(device string) string    { return "rx_" + pinned(device) }
func frontPin(device string) string { return "front_" + pinned(device) }

func pinned(device string) string { return strings.NewReplacer("~", "~7e", ".", "~2e").Replace(device) }

// receive puts overlay_rx on a physical interface, before all others there.
func (p *Part) receive(device string) error {
	l, err := p.home.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", device, err)
	}
	return p.attach(rxPin(device), l.Index, p.table.objects.OverlayRx)
}

func (p *Part) attach(pin string, index int, program *ebpf.Program) error {
	hook := bpf.Hook{Namespace: p.host.Home(), Index: index, Attach: ebpf.AttachTCXIngress, First: true}
	err := p.table.pins.Attach(pin, hook, program)
	if errors.Is(err, link.ErrNotSupported) {
		return fmt.Errorf("%w: Linux 6.6 or newer is needed", err)
	}
	return err
}

// openTrunk puts overlay_tx on the host's end of a lease's trunk, and only
// then brings it up: before, a frame from it would be the host's own.
func (p *Part) openTrunk(lease vnet.LeaseID) error {
	trunk := plan.Trunk(lease)
	l, err := p.home.LinkByName(trunk)
	if err != nil {
		return fmt.Errorf("find the trunk %s of %s: %w", trunk, lease, err)
	}
	if err := p.attach("tx_"+trunk, l.Index, p.table.objects.OverlayTx); err != nil {
		return err
	}
	if l.Up {
		return nil
	}
	return p.home.Do(kernel.UpLink(l.Index))
}

// lower takes a trunk down, if it is there, before its program goes.
func (p *Part) lower(trunk string) {
	if l, err := p.home.LinkByName(trunk); err == nil {
		_ = p.home.Do(kernel.DownLink(l.Index))
	}
}
