package vxlink

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// own is what root of a node made of the interface of a link, as last observed: it is
// made again with an interface that has to be. Queues, filters, neighbours and settings
// are not: what the kernel tells of them does not make them.
type own struct {
	namespace string
	name      string // of the interface
	down      bool
	mtu       int // 0: the link's
	addresses []kernel.Saved
	routes    []kernel.Saved
}

// mostOwn bounds the addresses, and the routes, that are kept of an interface.
const mostOwn = 256

// readOwn reads what tenants made of a node's interfaces, by device. Routes are those
// that ip(8) makes without a protocol: others have a program that makes them again.
func (n *node) readOwn(c *kernel.Conn) (err error) {
	if n.saved, err = c.SavedAddresses(); err == nil {
		n.routed, err = c.SavedRoutes(unix.RTPROT_BOOT)
	}
	return err
}

// ownAt is what was made of an interface that is as it may be.
func (n node) ownAt(inner, ours kernel.Link) own {
	is := own{namespace: n.name, name: inner.Name, down: !inner.Up, addresses: atMost(n.saved[inner.Index]), routes: atMost(n.routed[inner.Index])}
	if inner.MTU < ours.MTU {
		is.mtu = inner.MTU
	}
	return is
}

func atMost(list []kernel.Saved) []kernel.Saved { return list[:min(len(list), mostOwn)] }

// keepOwn has what was read take the place of what was known. That of interfaces which
// were not seen as they may be, or by another name, stays while there are links of their
// leases: a node may be made anew, too.
func (p *Part) keepOwn(read map[string]own, namespaces []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own == nil {
		p.own = make(map[string]own)
	}
	for key, is := range read {
		if was, known := p.own[key]; !known || was.name == is.name {
			p.own[key] = is
		}
	}
	maps.DeleteFunc(p.own, func(_ string, is own) bool {
		lease, _, _ := plan.ParseNamespace(is.namespace)
		return !slices.Contains(namespaces, plan.Fabric(lease))
	})
}

// knowsOwn says whether it is known what was made of an end's interface.
func (p *Part) knowsOwn(l plan.VxLink, i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.own[l.Key()+l.Device(i)]
	return known
}

// forgetOwn forgets that of a link's interfaces, which are taken away.
func (p *Part) forgetOwn(l plan.VxLink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range l.Ends {
		delete(p.own, l.Key()+l.Device(i))
	}
}

// restoreOwn gives an interface that was made again what its tenant had made of the one
// before. What it cannot have, since other things have changed meanwhile, is left out.
// One that was not there is down if that one was; one that is there by another name, or
// elsewhere, may have been set down for that.
func (w *work) restoreOwn(i int, c *kernel.Conn, want *plan.Port, gone bool) error {
	w.part.mu.Lock()
	was, known := w.part.own[w.link.Key()+w.link.Device(i)]
	w.part.mu.Unlock()
	if !known {
		return nil
	}
	if was.namespace != want.Namespace || was.name != want.Interface { // it is planned to be another one
		w.part.forgetOwn(w.link)
		return nil
	}
	l, err := c.LinkByName(want.Interface)
	if err != nil {
		return err
	}
	if was.mtu != 0 && was.mtu < want.MTU {
		if err := c.Do(kernel.ChangeLink(l.Index).Uint32(iflaMTU, uint32(was.mtu))); err != nil {
			return err
		}
	}
	if c.Restore(was.addresses, l.Index, l.Name); was.down && gone {
		return c.Do(kernel.DownLink(l.Index))
	}
	c.Restore(was.routes, l.Index, l.Name)
	return nil
}
