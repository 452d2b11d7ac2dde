package vxlink

import (
	"fmt"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// trunkMTU is more than any frame that enters by a port.
const trunkMTU = 65535

// noARP keeps the trunk from asking for neighbours.
const noARP = unix.IFF_NOARP

// trunk makes the pair by which a lease's tunnels leave its fabric, unless it
// is there. Its end in the host drops what no program in front takes, before
// it comes up: no stack of the host ever sees a tenant's frame.
func (w *work) trunk() (slot uint32, err error) {
	w.part.trunks.Lock()
	defer w.part.trunks.Unlock()
	if slot, err = w.part.slot(w.programs, trunkOf(w.link.Lease)); err == nil {
		err = w.setTrunk(slot)
	}
	if err != nil {
		return 0, fmt.Errorf("join the network to this host: %w", err)
	}
	return slot, nil
}

func (w *work) setTrunk(slot uint32) error {
	inside, outside, err := w.findTrunk(slot)
	if err != nil {
		return err
	}
	if inside.Index == 0 {
		if inside, outside, err = w.makeTrunk(slot); err != nil {
			return err
		}
	}
	if err := w.programs.attach(trunkPin(slot), w.fabric, inside.Index); err != nil {
		return err
	}
	if err := admit(w.home, outside.Index, w.programs.closed); err != nil {
		return err
	}
	if err := w.headroom(); err != nil {
		return fmt.Errorf("reserve headroom: %w", err)
	}
	return w.raiseTrunk(inside, outside)
}

// findTrunk returns both ends, if they are each other's.
func (w *work) findTrunk(slot uint32) (inside, outside kernel.Link, err error) {
	home, err := w.inside.NamespaceID(w.part.host.Home().Fd())
	if err != nil {
		return inside, outside, err
	}
	inside, err = w.inside.LinkByName(plan.TrunkInside)
	if err == nil {
		outside, err = w.home.LinkByName(plan.Trunk(w.link.Lease))
	}
	if kernel.NotFound(err) {
		return kernel.Link{}, outside, nil
	}
	if err == nil && !joined(inside, outside, slot, home) {
		inside = kernel.Link{}
	}
	return inside, outside, err
}

// joined says whether two devices are the ends of a slot's trunk. home is the
// fabric's number of the host's namespace.
func joined(inside, outside kernel.Link, slot uint32, home int) bool {
	return inside.Kind == "veth" && inside.Index == number(slot) && home >= 0 &&
		inside.PeerNS == home && inside.Peer == outside.Index && inside.MTU == trunkMTU
}

func (w *work) makeTrunk(slot uint32) (inside, outside kernel.Link, err error) {
	name := plan.Trunk(w.link.Lease)
	if err := w.clearTrunk(name, slot); err != nil {
		return inside, outside, err
	}
	m := kernel.NewLinkAt(number(slot), plan.TrunkInside, "veth", func(m *kernel.Message) {
		m.Nest(vethPeer, func() {
			m.Raw(kernel.LinkHeader(0, 0, 0)).String(unix.IFLA_IFNAME, name)
			m.Uint32(iflaMTU, trunkMTU).Uint32(unix.IFLA_NET_NS_FD, uint32(w.part.host.Home().Fd()))
		})
	}).Uint32(iflaMTU, trunkMTU)
	if err := w.inside.Do(m); err != nil {
		return inside, outside, fmt.Errorf("make its interface %s: %w", name, err)
	}
	if inside, err = w.inside.LinkByName(plan.TrunkInside); err == nil {
		outside, err = w.home.LinkByName(name)
	}
	return inside, outside, err
}

// clearTrunk removes whatever has one of its names or its number.
func (w *work) clearTrunk(name string, slot uint32) error {
	if err := w.inside.DeleteLink(number(slot)); err != nil {
		return err
	}
	for _, c := range []struct {
		conn *kernel.Conn
		name string
	}{{w.inside, plan.TrunkInside}, {w.home, name}} {
		old, err := c.conn.LinkByName(c.name)
		if kernel.NotFound(err) {
			continue
		}
		if err == nil {
			err = c.conn.DeleteLink(old.Index)
		}
		if err != nil {
			return fmt.Errorf("delete the old %s: %w", c.name, err)
		}
	}
	return nil
}

// raiseTrunk brings both ends up, the host's without an IPv6 address. That one
// is up only while something encapsulates, which its part sees to later.
func (w *work) raiseTrunk(inside, outside kernel.Link) error {
	mark := trunkMark(w.link.Lease)
	if outside.Alias != hostMark {
		if err := w.home.Quiet(outside.Index); err != nil {
			return err
		}
		m := kernel.NewMessage(unix.RTM_NEWLINK, 0, kernel.LinkHeader(outside.Index, unix.IFF_UP|noARP, unix.IFF_UP|noARP)).String(iflaAlias, hostMark)
		if err := w.home.Do(m); err != nil {
			return fmt.Errorf("bring up %s: %w", outside.Name, err)
		}
	}
	if inside.Up && inside.Alias == mark {
		return nil
	}
	return w.inside.Do(kernel.UpLink(inside.Index).String(iflaAlias, mark))
}

// hostMark is the alias of a trunk's end in the host's namespace, which every
// user sees: it does not tell whose it is.
const hostMark = "sublet"

func trunkMark(lease vnet.LeaseID) string { return fmt.Sprintf("sublet %s", lease) }

// removeTrunk removes a lease's trunk.
func (p *Part) removeTrunk(r *programs, lease vnet.LeaseID) error {
	p.trunks.Lock()
	defer p.trunks.Unlock()
	home, err := p.host.Dial("")
	if err != nil {
		return err
	}
	defer home.Close()
	outside, err := home.LinkByName(plan.Trunk(lease))
	switch {
	case kernel.NotFound(err):
	case err != nil:
		return fmt.Errorf("read trunk %s: %w", plan.Trunk(lease), err)
	default:
		if err := home.DeleteLink(outside.Index); err != nil {
			return fmt.Errorf("delete trunk %s: %w", outside.Name, err)
		}
	}
	return p.removeEnd(r, home, trunkOf(lease))
}
