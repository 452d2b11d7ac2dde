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
	part   *Part
	link   plan.VxLink
	fabric *os.File
	inside *kernel.Conn // in the fabric
	home   *kernel.Conn // in the host's namespace
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

// set makes both devices, then what enforces their rates, then the wires
// between them, and opens the link last.
func (w *work) set() error {
	var ends [2]end
	for i := range ends {
		e, err := w.device(i)
		if err != nil {
			return fmt.Errorf("end %s: %w", w.link.Device(i), err)
		}
		ends[i] = e
	}
	for i, e := range ends {
		if err := w.shape(i, e); err != nil {
			return fmt.Errorf("end %s: %w", w.link.Device(i), err)
		}
	}
	for i, e := range ends {
		other := ends[1-i]
		if err := (wire{target: other.Index, class: other.class, stamp: w.stamp(i)}).attach(w.inside, e.Index); err != nil {
			return fmt.Errorf("end %s: %w", w.link.Device(i), err)
		}
	}
	for i, e := range ends {
		if err := w.raise(i, e); err != nil {
			return fmt.Errorf("end %s: bring it up: %w", w.link.Device(i), err)
		}
		if e.retired != 0 {
			w.part.dropClass(w.home, e.Peer, e.retired)
		}
	}
	return nil
}

// stamp is what frames that enter by an end must bear.
func (w *work) stamp(i int) uint16 {
	if t := w.link.Ends[i].Tunnel; t != nil {
		return stampOf(t.Remote)
	}
	return 0
}

// raise brings an end up, with its mark and its MTU.
func (w *work) raise(i int, e end) error {
	mark, mtu := w.mark(e.minor, w.link.Ends[i]), w.mtu(i)
	if e.Up && e.Alias == mark && e.MTU == mtu {
		return nil
	}
	return w.inside.Do(kernel.UpLink(e.Index).String(iflaAlias, mark).Uint32(iflaMTU, uint32(mtu)))
}

// mtu of an end: a tunnel's or a port's.
func (w *work) mtu(i int) int {
	if t := w.link.Ends[i].Tunnel; t != nil {
		return t.MTU
	}
	return w.link.Ends[i].Port.MTU
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
	return p.removeFabric(plan.Fabric(link.Lease))
}

func (p *Part) clearLink(link plan.VxLink) error {
	p.fabrics.RLock()
	defer p.fabrics.RUnlock()
	w, err := p.open(link)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.close()
	return w.remove(0, 1)
}

// remove deletes the devices of some ends, then their classes: if only the
// devices go, Observe sweeps the classes up.
func (w *work) remove(ends ...int) error {
	var devices []kernel.Link
	var indexes []int
	for _, i := range ends {
		device, err := w.inside.LinkByName(w.link.Device(i))
		if kernel.NotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", w.link.Device(i), err)
		}
		devices, indexes = append(devices, device), append(indexes, device.Index)
	}
	if len(devices) == 0 {
		return nil
	}
	if err := w.part.bury(plan.Fabric(w.link.Lease), w.inside, indexes); err != nil {
		return fmt.Errorf("delete its devices: %w", err)
	}
	for _, d := range devices {
		if minor, _ := parseMark(d.Alias); minor != 0 {
			if err := w.part.dropClass(w.home, d.Peer, minor); err != nil {
				return err
			}
		}
	}
	return nil
}

// grave is a set of devices of one fabric that are deleted at once.
type grave struct {
	indexes []int
	dug     bool
	err     error
}

// bury deletes devices together with those that others want to delete while
// this one waits for its turn.
func (p *Part) bury(fabric string, c *kernel.Conn, indexes []int) error {
	p.mu.Lock()
	g := p.graves[fabric]
	if g == nil {
		g = &grave{}
		p.graves[fabric] = g
	}
	g.indexes = append(g.indexes, indexes...)
	p.mu.Unlock()
	p.digging.Lock()
	defer p.digging.Unlock()
	if !g.dug {
		p.mu.Lock()
		delete(p.graves, fabric)
		p.mu.Unlock()
		g.dug, g.err = true, c.DeleteLinks(g.indexes)
	}
	return g.err
}
