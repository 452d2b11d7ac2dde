package vxlink

import (
	"errors"
	"fmt"
	"os"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// work is what one Do needs at hand.
type work struct {
	part     *Part
	programs *programs
	link     plan.VxLink
	fabric   *os.File
	inside   *kernel.Conn // in the fabric
	home     *kernel.Conn // in the host's namespace
}

// open opens a link's fabric; os.ErrNotExist if there is none.
func (p *Part) open(link plan.VxLink) (*work, error) {
	fabric, err := p.host.Open(plan.Fabric(link.Lease))
	if err != nil {
		return nil, err
	}
	w := &work{part: p, link: link, fabric: fabric}
	if w.inside, err = kernel.DialIn(fabric); err == nil {
		w.home, err = p.host.Dial("")
	}
	if err == nil {
		w.programs, err = p.programs()
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *work) close() {
	w.fabric.Close()
	for _, c := range []*kernel.Conn{w.inside, w.home} {
		if c != nil {
			c.Close()
		}
	}
}

// setLink brings a link to what it shall be, from nothing, from a half-built
// or damaged link, or from other rates. What is right is not touched.
func (p *Part) setLink(link plan.VxLink) error {
	p.fabrics.RLock()
	defer p.fabrics.RUnlock()
	w, err := p.open(link)
	for errors.Is(err, os.ErrNotExist) {
		p.fabrics.RUnlock()
		err = p.makeFabric(plan.Fabric(link.Lease))
		p.fabrics.RLock()
		if err == nil {
			w, err = p.open(link) // again missing: another's delete came between
		}
	}
	if err != nil {
		return fmt.Errorf("link %s: %w", link.Key(), err)
	}
	defer w.close()
	p.note(link, true)
	if err := w.set(); err != nil {
		return fmt.Errorf("link %s: %w", link.Key(), err)
	}
	return nil
}

// set makes both ends, then what enforces their rates, then says what becomes
// of their frames, and opens the ports last.
func (w *work) set() error {
	trunk, err := w.trunkFor()
	if err != nil {
		return err
	}
	var ends [2]end
	for i := range ends {
		e, err := w.end(i)
		if err == nil {
			err = w.shape(i, e)
		}
		if err == nil {
			e.outlet, err = w.detour(i, e.slot)
		}
		if err == nil {
			e.merge, err = w.merge(i)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.side(i), err)
		}
		ends[i] = e
	}
	if err := w.setControl(ends); err != nil {
		return fmt.Errorf("say what is control: %w", err)
	}
	for i, e := range ends {
		if err := w.spread(i, e.outlet, ends[1-i].record); err != nil {
			return fmt.Errorf("%s: spread its flows: %w", w.side(i), err)
		}
		if w.link.Ends[i].Join != nil {
			continue
		}
		if err := w.direct(i, ends, trunk); err != nil {
			return fmt.Errorf("%s: say where its frames go: %w", w.side(i), err)
		}
	}
	for i, e := range ends {
		err := w.open(i, e, ends[1-i])
		if err == nil {
			err = w.release(i)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.side(i), err)
		}
	}
	return nil
}

// side is what users call an end of a link.
func (w *work) side(i int) string {
	port := portOf(w.link.Ends[i])
	if port == nil {
		return "towards its other end"
	}
	if _, node, ok := plan.ParseNamespace(port.Namespace); ok {
		return "at " + node
	}
	return "at its switch"
}

// setControl says for both ends what is control, and for their detours.
func (w *work) setControl(ends [2]end) error {
	for _, e := range ends {
		for _, slot := range []uint32{e.slot, e.outlet} {
			if err := w.programs.setControl(slot, w.link.Control); err != nil {
				return err
			}
		}
	}
	return nil
}

// release says of what is written down at other places of an end that it only stands
// by: then it can be told from what is there now, whatever becomes of it.
func (w *work) release(i int) error {
	if w.link.Standby || w.link.Ends[i].Join != nil {
		return nil
	}
	for turn := range plan.Places {
		slot, ok, err := w.part.find(w.programs, placeOf(w.link, i).turned(turn))
		if err != nil {
			return err
		}
		if !ok || turn == w.link.Ends[i].Place {
			continue
		}
		record, err := w.programs.read(slot)
		if err == nil && record.Standby == 0 {
			record.Standby = 1
			err = w.programs.setRecord(slot, record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// direct says where frames that enter by an end go: at the far end of its detour
// first, if it has one.
func (w *work) direct(i int, ends [2]end, trunk uint32) error {
	e := ends[i]
	to := endOf(w.link, i, [2]uint32{ends[0].slot, ends[1].slot}, e.outlet, ends[1-i], trunk)
	if err := w.programs.setEnd(e.outlet, to); err != nil {
		return err
	}
	if e.merge != 0 {
		if err := w.programs.setEnd(e.merge, afterMerge(w.link, i, e.slot, e.merge)); err != nil {
			return err
		}
	}
	if e.outlet != e.slot {
		return w.programs.setEnd(e.slot, goRound(e.slot, e.outlet))
	}
	return w.goStraight(i)
}

// trunkFor makes the lease's trunk if the link has a tunnel, and returns its slot.
func (w *work) trunkFor() (uint32, error) {
	if w.link.Ends[0].Tunnel == nil && w.link.Ends[1].Tunnel == nil {
		return 0, nil
	}
	return w.trunk()
}

// endOf is what becomes of frames that entered by end i, at the slot where they
// go on. The other end's record counts if it is a tunnel, its merge if it is a port.
func endOf(l plan.VxLink, i int, slots [2]uint32, outlet uint32, other end, trunk uint32) vxlinkEnd {
	w := vxlinkEnd{From: uint32(number(outlet)), Control: uint8(boolean(l.Control != nil))}
	if l.Ends[i].Tunnel != nil {
		w.From = uint32(number(trunk))
	}
	if l.Ends[0].Down || l.Ends[1].Down {
		return vxlinkEnd{Action: vxlinkActionFWD_CLOSED}
	}
	out := l.Ends[1-i]
	if out.Tunnel != nil && spreads(l, i) {
		w.Action, w.Device = vxlinkActionFWD_SPREAD, uint32(number(trunk))
		if divides(l, i) {
			w.Action = vxlinkActionFWD_DIVIDE
		}
		return w
	}
	if out.Tunnel != nil {
		w.Action, w.Device = vxlinkActionFWD_TUNNEL, uint32(number(trunk))
		w.Mark, w.Priority, w.Gre = other.record.Vni, handleOf(other.record.Minor), other.record.gre()
		return w
	}
	if merges(l, 1-i) {
		if other.merge == 0 {
			return vxlinkEnd{Action: vxlinkActionFWD_CLOSED}
		}
		w.Action, w.Device = vxlinkActionFWD_MERGE, uint32(number(other.merge))
		return w
	}
	to := toPort(out, int(w.From), slots[1-i])
	to.Control = w.Control
	return to
}

// toPort is what becomes of frames that come in by a device and leave by a port.
func toPort(out plan.End, from int, slot uint32) vxlinkEnd {
	w := vxlinkEnd{From: uint32(from), Action: vxlinkActionFWD_PEER, Device: uint32(number(slot))}
	if out.Rate != 0 {
		w.Action = vxlinkActionFWD_QUEUE
	} else if !isStation(portOf(out)) {
		w.Action = vxlinkActionFWD_SWITCH
	}
	copy(w.Mac[:], hardware(portOf(out)))
	return w
}

// portOf is the port of an end that is one, or joins one.
func portOf(e plan.End) *plan.Port {
	if e.Join != nil {
		return e.Join
	}
	return e.Port
}

// open lets frames in by an end: a port's program and device. One that is down
// takes the carrier from the node's interface.
func (w *work) open(i int, e, other end) error {
	if w.link.Ends[i].Tunnel != nil {
		w.part.measure(e.slot, other.outlet)
		return w.part.dropClass(w.home, int(e.record.Uplink), e.retired)
	}
	if w.link.Ends[i].Join != nil {
		return nil
	}
	if err := admit(w.inside, e.Index, w.programs.port); err != nil {
		return err
	}
	mark, mtu, down := mark(w.link), w.link.Ends[i].Port.MTU, w.link.Ends[i].Down
	if e.Up != down && e.Alias == mark && e.MTU == mtu {
		return nil
	}
	change := kernel.UpLink
	if down {
		change = kernel.DownLink
	}
	return w.inside.Do(change(e.Index).String(iflaAlias, mark).Uint32(iflaMTU, uint32(mtu)))
}

// deleteLink takes a link's devices and classes away, and the fabric with the
// last link.
func (p *Part) deleteLink(link plan.VxLink) error {
	if err := p.clearLink(link); err != nil {
		return fmt.Errorf("delete link %s: %w", link.Key(), err)
	}
	if p.note(link, false) > 0 {
		return nil
	}
	return p.removeFabric(link.Lease)
}

func (p *Part) clearLink(link plan.VxLink) error {
	p.fabrics.RLock()
	defer p.fabrics.RUnlock()
	w, err := p.open(link)
	if errors.Is(err, os.ErrNotExist) {
		return nil // Observe sweeps up what is written down
	}
	if err != nil {
		return err
	}
	defer w.close()
	return w.remove()
}

// remove deletes the devices, then the tunnels' classes, then what is written
// down of both.
func (w *work) remove() error {
	var indexes []int
	for i := range w.link.Ends {
		mine, err := w.mine(i)
		if err != nil {
			return err
		}
		if !mine || w.link.Path > 0 { // the device is path 0's
			continue
		}
		device, err := w.inside.LinkByName(w.link.Device(i))
		if kernel.NotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", w.link.Device(i), err)
		}
		indexes = append(indexes, device.Index)
	}
	if len(indexes) > 0 {
		if err := w.part.deleteDevices(plan.Fabric(w.link.Lease), w.inside, indexes); err != nil {
			return fmt.Errorf("delete its devices: %w", err)
		}
	}
	for i := range w.link.Ends {
		mine, err := w.mine(i)
		if err != nil {
			return err
		}
		if !mine {
			continue
		}
		at := place{w.link.Lease, w.link.Index | w.link.Path<<pathBits, i}.turned(w.link.Ends[i].Place)
		if err := w.leaveSpread(i); err != nil {
			return err
		}
		for _, beside := range []place{detourOf(at), mergeOf(at)} {
			if err := w.part.removeDetour(w.programs, beside); err != nil {
				return err
			}
		}
		if err := w.part.removeEnd(w.programs, w.home, at); err != nil {
			return err
		}
	}
	return nil
}

// mine says whether an end is this link's to remove: of one that stands by, what is
// written down so.
func (w *work) mine(i int) (bool, error) {
	if !w.link.Standby {
		return true, nil
	}
	slot, ok, err := w.part.find(w.programs, placeOf(w.link, i))
	if err != nil || !ok || w.link.Ends[i].Join != nil {
		return false, err
	}
	record, err := w.programs.read(slot)
	return record.Standby != 0, err
}

// removeEnd removes what an end has besides its device.
func (p *Part) removeEnd(r *programs, home *kernel.Conn, at place) error {
	slot, ok, err := p.find(r, at)
	if err != nil || !ok {
		return err
	}
	record, err := r.read(slot)
	if err != nil {
		return err
	}
	if record.IsTunnel != 0 {
		p.untrim(slot)
		if err := p.dropClassOf(r, home, slot, record); err != nil {
			return err
		}
	}
	return p.forget(r, slot, record)
}

// deleteBatch is a set of devices of one fabric that are deleted at once.
type deleteBatch struct {
	indexes []int
	done    bool
	err     error
}

// deleteDevices deletes devices together with those that others want to delete
// while this one waits for its turn.
func (p *Part) deleteDevices(fabric string, c *kernel.Conn, indexes []int) error {
	p.mu.Lock()
	b := p.batches[fabric]
	if b == nil {
		b = &deleteBatch{}
		p.batches[fabric] = b
	}
	b.indexes = append(b.indexes, indexes...)
	p.mu.Unlock()
	p.deleting.Lock()
	defer p.deleting.Unlock()
	if !b.done {
		p.mu.Lock()
		delete(p.batches, fabric)
		p.mu.Unlock()
		b.done, b.err = true, c.DeleteLinks(b.indexes)
	}
	return b.err
}
