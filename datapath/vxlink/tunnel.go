package vxlink

import (
	"fmt"
	"strings"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// tunnel makes the record of a tunnel's end, its class of the physical
// interface, and the way from its VNI to it. What it was before goes first.
func (w *work) tunnel(i int, slot uint32, want *plan.Tunnel) (end, error) {
	uplink, err := w.home.LinkByName(want.Interface)
	if err != nil {
		return end{}, fmt.Errorf("find uplink %s: %w", want.Interface, err)
	}
	was, err := w.programs.read(slot)
	if err != nil {
		return end{}, err
	}
	e := end{slot: slot, record: describe(w.link, i)}
	e.record.Uplink, e.record.Minor = uint32(uplink.Index), was.Minor
	if was.IsTunnel != 0 && (was.Uplink != e.record.Uplink || was.Vni != e.record.Vni) {
		if err := w.unmake(slot, was); err != nil {
			return e, err
		}
		e.record.Minor = 0
	} else if was.Minor != 0 && was.BestEffort != e.record.BestEffort { // classes never move
		e.record.Minor, e.retired = 0, was.Minor
	}
	return e, w.classify(&e, was, want)
}

// unmake takes a tunnel's class and its way away.
func (w *work) unmake(slot uint32, was vxlinkRecord) error {
	w.part.untrim(slot)
	if err := w.programs.clearTunnel(was.Vni, slot); err != nil {
		return err
	}
	return w.part.dropClassOf(w.programs, w.home, slot, was)
}

// classify gives a tunnel its class, whose number is written down before the
// class exists, so that no crash loses it.
func (w *work) classify(e *end, was vxlinkRecord, want *plan.Tunnel) error {
	index := int(e.record.Uplink)
	if e.record.Minor == 0 {
		minor, err := w.part.takeMinor(w.programs, index)
		if err != nil {
			return err
		}
		e.record.Minor = minor
	}
	if was != e.record {
		if err := w.programs.setRecord(e.slot, e.record); err != nil {
			return fmt.Errorf("write down its class: %w", err)
		}
	}
	if err := w.part.setTunnelClass(w.home, e.slot, e.record, w.link.Control != nil); err != nil {
		return fmt.Errorf("book its rate at %s (class 1:%x): %w", want.Interface, e.record.Minor, err)
	}
	return w.programs.tunnels.Put(e.record.Vni, e.slot)
}

// setTunnelClass sets a tunnel's class, with the ceiling it has if that is one
// the record allows, and its queue.
func (p *Part) setTunnelClass(home *kernel.Conn, slot uint32, r vxlinkRecord, control bool) error {
	p.rates.Lock()
	defer p.rates.Unlock()
	index, id := int(r.Uplink), handleOf(r.Minor)
	parent := r.parent()
	class := r.class(r.full(), r.Rate)
	if was, err := home.Class(index, id); err == nil && r.allows(was.HTB().Ceil, p.undercounts()) {
		class = r.class(was.HTB().Ceil, r.guaranteed(was.HTB().Rate, p.undercounts()))
	}
	if err := setClass(home, index, r.Minor, parent, class); err != nil {
		return err
	}
	p.trimmed(slot, r, class)
	return r.setLimit(home, control)
}

// mark is the alias of an end's device: whose it is.
func mark(l plan.VxLink) string { return fmt.Sprintf("sublet %s %s", l.Lease, l.Link) }

// linkName reads the link out of a mark.
func linkName(alias string) string {
	fields := strings.Fields(alias)
	if len(fields) < 3 {
		return ""
	}
	return fields[2]
}
