package vxlink

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

const (
	iflaAlias = unix.IFLA_IFALIAS
	iflaMTU   = unix.IFLA_MTU

	iflaTxQueue = unix.IFLA_TXQLEN
)

// end is one end of a link: the device of a port, or the record of a tunnel.
type end struct {
	kernel.Link
	slot    uint32
	outlet  uint32 // slot at which its frames go on: its own, or its detour's
	merge   uint32 // slot of the device that puts frames for a port into order; 0: they are
	record  vxlinkRecord
	retired uint16 // class to delete once nothing uses it
}

// end finds or makes end i. A device that leads elsewhere is made anew.
func (w *work) end(i int) (end, error) {
	slot, err := w.part.slot(w.programs, placeOf(w.link, i))
	if err != nil || w.link.Ends[i].Join != nil {
		return end{slot: slot}, err
	}
	have, err := w.inside.LinkByName(w.link.Device(i))
	if err != nil && !kernel.NotFound(err) {
		return end{}, fmt.Errorf("read it: %w", err)
	}
	if want := w.link.Ends[i]; want.Port != nil {
		return w.port(i, slot, have, want.Port)
	} else if want.Tunnel != nil {
		if have.Index != 0 && w.link.Path == 0 { // it was a port
			if err := w.part.deleteDevices(plan.Fabric(w.link.Lease), w.inside, []int{have.Index}); err != nil {
				return end{}, fmt.Errorf("delete its device: %w", err)
			}
		}
		return w.tunnel(i, slot, want.Tunnel)
	}
	return end{}, errors.New("has neither port nor tunnel")
}

// port makes a veth pair into a node and sets up the tenant's side.
func (w *work) port(i int, slot uint32, have kernel.Link, want *plan.Port) (end, error) {
	if err := w.notTunnel(slot, i); err != nil {
		return end{}, err
	}
	node, err := w.part.host.Open(want.Namespace)
	if err != nil {
		return end{}, fmt.Errorf("open node %s: %w", want.Namespace, err)
	}
	defer node.Close()
	inner, err := kernel.DialIn(node)
	if err != nil {
		return end{}, err
	}
	defer inner.Close()
	inner.Foreign = true
	id, err := w.inside.NamespaceID(node.Fd())
	if err != nil {
		return end{}, fmt.Errorf("find node %s: %w", want.Namespace, err)
	}
	gone := have.Index == 0
	gso := gsoSize(w.link.Ends[1-i].Rate, want.MTU)
	leads, err := hasIndex(inner, have.Peer, want.Interface)
	if err != nil { // whether it is right is not known: it stays
		return end{}, fmt.Errorf("read %s/%s: %w", want.Namespace, want.Interface, err)
	}
	if have.Kind != "veth" || have.Index != number(slot) || id < 0 || have.PeerNS != id || !leads {
		if err := w.programs.clearEntry(slot); err != nil { // it was another device's
			return end{}, err
		}
		if have, err = w.makePort(i, slot, inner, node.Fd(), want, gso); err != nil {
			return end{}, err
		}
		w.reserve(have.Index)
		w.part.gone(w.link)
	}
	if err := tenantSide(inner, have, want, gso); err != nil {
		return end{}, err
	}
	if !complete(have) && w.part.Remade != nil && plan.TenantsNode(want.Namespace) {
		if err := w.part.Remade(want.Namespace, want.Interface); err != nil {
			return end{}, fmt.Errorf("settings of %s/%s: %w", want.Namespace, want.Interface, err)
		}
	}
	if !complete(have) {
		if err := w.restoreOwn(i, inner, want, gone); err != nil {
			return end{}, fmt.Errorf("what was made at %s/%s: %w", want.Namespace, want.Interface, err)
		}
	}
	if _, name, ok := plan.ParseSwitchNamespace(want.Namespace, vnet.SwitchOpenFlow); ok {
		if err := setQueues(inner, have.Peer, want.Queues, want.MTU); err != nil {
			return end{}, fmt.Errorf("set the queues of port %s of %s: %w", want.Interface, name, err)
		}
	}
	return end{Link: have, slot: slot}, nil
}

func hasIndex(c *kernel.Conn, index int, name string) (bool, error) {
	l, err := c.LinkByName(name)
	if kernel.NotFound(err) {
		return false, nil
	}
	return l.Index == index, err
}

// makePort makes the pair with one message; whatever has one of its names, or
// its number, is a leftover and goes.
func (w *work) makePort(i int, slot uint32, inner *kernel.Conn, node uintptr, want *plan.Port, gso int64) (old kernel.Link, err error) {
	name := w.link.Device(i)
	if err := w.clear(name, slot); err != nil {
		return old, err
	}
	m := kernel.NewLinkAt(number(slot), name, "veth", func(m *kernel.Message) {
		m.Nest(vethPeer, func() {
			m.Raw(kernel.LinkHeader(0, 0, 0)).String(unix.IFLA_IFNAME, want.Interface)
			m.Attr(unix.IFLA_ADDRESS, hardware(want))
			m.Uint32(iflaMTU, uint32(want.MTU)).Uint32(unix.IFLA_NET_NS_FD, uint32(node))
			kernel.SetGSO(m, int(gso))
		})
	}).Uint32(iflaMTU, uint32(want.MTU))
	err = w.inside.Do(m)
	if kernel.Exists(err) {
		if squatter, found := inner.LinkByName(want.Interface); found == nil {
			if err := evict(inner, squatter.Index); err != nil {
				return old, fmt.Errorf("delete the old %s: %w", want.Interface, err)
			}
			err = w.inside.Do(m)
		}
	}
	if err != nil {
		return old, fmt.Errorf("make interface %s: %w", want.Interface, err)
	}
	return w.inside.LinkByName(name)
}

// clear deletes what has an end's name or its number.
func (w *work) clear(name string, slot uint32) error {
	var indexes []int
	if old, err := w.inside.LinkByName(name); err == nil {
		indexes = append(indexes, old.Index)
	} else if !kernel.NotFound(err) {
		return err
	}
	if old, err := w.inside.LinkByIndex(number(slot)); err == nil {
		indexes = append(indexes, old.Index)
	} else if !kernel.NotFound(err) {
		return err
	}
	if len(indexes) == 0 {
		return nil
	}
	return w.part.deleteDevices(plan.Fabric(w.link.Lease), w.inside, indexes)
}

// notTunnel makes sure that an end's record is a port's.
func (w *work) notTunnel(slot uint32, i int) error {
	was, err := w.programs.read(slot)
	if err != nil {
		return err
	}
	if was.IsTunnel != 0 {
		if err := w.unmake(slot, was); err != nil {
			return err
		}
	}
	if want := describe(w.link, i); was != want {
		return w.programs.setRecord(slot, want)
	}
	return nil
}

// evict frees a device's name. What cannot be deleted, such as a loopback that
// the tenant gave the name, gets another.
func evict(c *kernel.Conn, index int) error {
	err := c.DeleteLink(index)
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	name := "lo"
	if _, err := c.LinkByName(name); err == nil {
		name = fmt.Sprintf("was%d", index)
	}
	return c.Do(kernel.DownLink(index), kernel.ChangeLink(index).String(unix.IFLA_IFNAME, name), kernel.UpLink(index))
}

// hardware is the address of an interface.
func hardware(p *plan.Port) []byte {
	h := p.Hardware()
	return h[:]
}

// vethPeer is VETH_INFO_PEER (linux/veth.h).
const vethPeer = 1

// tenantSide sets MTU, segment size and address of the tenant's end of a pair. One
// that its tenant set down after it was complete stays down, with whatever
// addresses it has; and so does an MTU that they lowered.
func tenantSide(c *kernel.Conn, ours kernel.Link, want *plan.Port, gso int64) error {
	l, err := c.LinkByName(want.Interface)
	if err != nil {
		return fmt.Errorf("read %s/%s: %w", want.Namespace, want.Interface, err)
	}
	theirs := complete(ours) && plan.TenantsNode(want.Namespace)
	down, mtu := theirs && !l.Up, want.MTU
	if theirs && l.MTU < min(ours.MTU, want.MTU) {
		mtu = l.MTU
	}
	if l.Up == down || l.MTU != mtu || int64(l.GSO) != gso {
		m := change(l.Index, !down).Uint32(iflaMTU, uint32(mtu))
		kernel.SetGSO(m, int(gso))
		if err := c.Do(m); err != nil {
			return fmt.Errorf("set up %s/%s: %w", want.Namespace, want.Interface, err)
		}
	}
	if down || !want.Address.IsValid() { // the latter: a switch's
		return nil
	}
	if err := setAddresses(c, l.Index, want, plan.Inside{NoIPv6: mtu < min(want.MTU, plan.LeastIPv6)}); err != nil {
		return fmt.Errorf("address %s: %w", want, err)
	}
	return nil
}

// moreMetric is added to the metric of a port's further addresses, which are so
// told from the first.
const moreMetric = 1 << 16

// addressesOf are those that a port shall have.
func addressesOf(index int, want *plan.Port) []kernel.Address {
	list := []kernel.Address{{Index: index, Local: want.Address, Reach: want.Reaches(), Metric: want.Metric}}
	for _, p := range want.More {
		list = append(list, kernel.Address{Index: index, Local: p.Addr(), Reach: p.Masked(), Metric: want.Metric + moreMetric})
	}
	return list
}

// setAddresses leaves the planned addresses on the interface that it can have;
// what the tenant added with another local part stays, unless it passes for ours
// (port in observe_link.go).
func setAddresses(c *kernel.Conn, index int, want *plan.Port, inside plan.Inside) error {
	all, err := c.Addresses(index)
	if err != nil {
		return err
	}
	wanted := slices.DeleteFunc(addressesOf(index, want), func(a kernel.Address) bool { return inside.Lacks(a.Local) })
	local := func(x kernel.Address) bool {
		return slices.ContainsFunc(wanted, func(w kernel.Address) bool { return w.Local == x.Local })
	}
	for _, a := range all {
		if !slices.Contains(wanted, a) && (local(a) || a.Metric != 0) {
			if err := c.DeleteAddress(a); err != nil {
				return err
			}
		}
	}
	if all, err = c.Addresses(index); err != nil { // others of a subnet go with its first
		return err
	}
	for _, w := range wanted {
		set := c.AddAddress
		if slices.Contains(all, w) {
			set = c.RestoreRoute
		}
		if err := set(w); err != nil {
			return err
		}
	}
	return nil
}

// shape sets or lifts the rate of a port; a tunnel's is its class's.
func (w *work) shape(i int, e end) error {
	if w.link.Ends[i].Port == nil {
		return nil
	}
	have, err := w.inside.RootQdisc(e.Index)
	if err != nil {
		return fmt.Errorf("read its queue: %w", err)
	}
	rate := w.link.Ends[i].Rate
	want := shaper(rate, w.link.Ends[i].Port.MTU)
	switch {
	case rate == 0 && have.Handle == 0:
		return nil
	case have.Kind == "tbf" && isShaper(have.Shaper(), want):
		return w.setBands(i, e)
	case have.Handle != 0 && (rate == 0 || have.Kind != "tbf"):
		if err := w.inside.DeleteQdisc(e.Index, kernel.TCRoot); err != nil || rate == 0 {
			return err
		}
	}
	if err := w.inside.Do(kernel.SetTBF(e.Index, want)); err != nil {
		return fmt.Errorf("shape to %s: %w", rate, err)
	}
	return w.setBands(i, e)
}
