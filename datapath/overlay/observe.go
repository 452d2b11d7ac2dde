package overlay

import (
	"context"
	"fmt"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// Observe reads the entries back. One that is missing, wrong, or whose
// programs are not where they belong is listed without its MTU, as no plan has
// it.
func (p *Part) Observe(_ context.Context, host *plan.Host) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.table == nil {
		if left, err := bpf.Left(p.host, part); err != nil {
			return fmt.Errorf("observe the overlay: %w", err)
		} else if !left && !p.keepsTables() {
			return bpf.Tidy(p.host)
		}
	}
	if err := p.open(); err != nil {
		return fmt.Errorf("observe the overlay: %w", err)
	}
	if err := p.table.pins.Repin(); err != nil {
		return fmt.Errorf("observe the overlay: %w", err)
	}
	if err := p.survey(host); err != nil {
		return fmt.Errorf("observe the overlay: %w", err)
	}
	p.auditTables()
	return p.sweep()
}

func (p *Part) survey(host *plan.Host) error {
	items, err := p.table.owners()
	if err != nil {
		return err
	}
	p.items = items
	if err := p.refresh(); err != nil {
		return err
	}
	devices, err := p.home.Links()
	if err != nil {
		return err
	}
	s := survey{Part: p, links: make(map[string]kernel.Link, len(devices)), hooked: make(map[string]bool)}
	for _, d := range devices {
		s.links[d.Name] = d
	}
	for id, item := range items {
		right, err := s.right(id, item)
		if err != nil {
			return err
		}
		if !right {
			item.MTU = 0
		}
		if uint32(item.VNI) != id { // unreadable
			if err := p.table.objects.Owners.Delete(id); err != nil {
				return err
			}
			continue
		}
		host.Add(item)
	}
	return p.orphans()
}

// survey is one reading of the host.
type survey struct {
	*Part
	links  map[string]kernel.Link
	hooked map[string]bool // programs found where they belong, by pin
}

// right says whether everything an item asks for is as set leaves it.
func (s *survey) right(id uint32, item plan.Overlay) (bool, error) {
	have, ok, err := s.table.entry(id)
	if err != nil || !ok {
		return false, err
	}
	want, err := s.build(item, have.Slot)
	if err != nil || want != have {
		return false, nil
	}
	row, err := protocolOf(item.Protocol)
	if err != nil {
		return false, nil
	}
	uplink, trunk := s.links[item.Interface], s.links[plan.Trunk(item.Lease)]
	key, end, err := endOf(row, item, uplink.Index, trunk.Index, have.Slot)
	var there overlayTunnelEnd
	if err != nil || s.table.objects.Ends.Lookup(key, &there) != nil || there != end {
		return false, nil
	}
	return trunk.Up && s.gsoRight() && s.decapRight() && (!row.stack || s.stackRight()) && s.on(rxPin(item.Interface), uplink, s.table.objects.OverlayRx) &&
		s.on("tx_"+trunk.Name, trunk, s.table.objects.OverlayTx), nil
}

// on says whether a program is on a device, looking once.
func (s *survey) on(pin string, device kernel.Link, program *ebpf.Program) bool {
	found, known := s.hooked[pin]
	if !known {
		on, err := s.table.pins.Attached(pin, device.Index, program)
		found = err == nil && on && device.Index != 0
		s.hooked[pin] = found
	}
	return found
}

// orphans removes what was written for items that are not noted any more.
func (p *Part) orphans() error {
	var id uint32
	var e overlayEntry
	var gone []uint32
	all := p.table.objects.Entries.Iterate()
	for all.Next(&id, &e) {
		if _, known := p.items[id]; !known {
			gone = append(gone, id)
		}
	}
	if err := all.Err(); err != nil {
		return err
	}
	for _, id := range gone {
		if err := missing(p.table.objects.Entries.Delete(id)); err != nil {
			return err
		}
	}
	return p.orphanEnds()
}

func (p *Part) orphanEnds() error {
	var key uint64
	var end overlayTunnelEnd
	var gone []uint64
	kept := p.tableEnds()
	all := p.table.objects.Ends.Iterate()
	for all.Next(&key, &end) {
		if _, known := p.items[end.Mark]; !known && !kept[key] {
			gone = append(gone, key)
		}
	}
	if err := all.Err(); err != nil {
		return err
	}
	for _, key := range gone {
		if err := missing(p.table.objects.Ends.Delete(key)); err != nil {
			return err
		}
	}
	return nil
}
