package vxlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

const (
	iflaAlias = unix.IFLA_IFALIAS
	iflaMTU   = unix.IFLA_MTU
)

// end is the device of one end of a link.
type end struct {
	kernel.Link
	minor   uint16 // class of a tunnel
	class   uint32 // its number; 0 for a port
	retired uint16 // class to delete once nothing uses it
}

// device finds or makes the device of end i. One that leads elsewhere is
// made anew.
func (w *work) device(i int) (end, error) {
	name := w.link.Device(i)
	have, err := w.inside.LinkByName(name)
	if err != nil && !kernel.NotFound(err) {
		return end{}, fmt.Errorf("read it: %w", err)
	}
	if want := w.link.Ends[i]; want.Port != nil {
		return w.port(i, have, want.Port)
	} else if want.Tunnel != nil {
		return w.tunnel(i, have, want.Tunnel)
	}
	return end{}, errors.New("has neither port nor tunnel")
}

// port makes a veth pair into a node and sets up the tenant's side.
func (w *work) port(i int, have kernel.Link, want *plan.Port) (end, error) {
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
	gso := gsoSize(w.link.Ends[1-i].Rate, want.MTU)
	if have.Kind != "veth" || id < 0 || have.PeerNS != id || !leadsTo(inner, have.Peer, want.Interface) {
		if have, err = w.makePort(i, have, inner, node.Fd(), want, gso); err != nil {
			return end{}, err
		}
	}
	return end{Link: have}, tenantSide(inner, have.Peer, want, gso)
}

func leadsTo(c *kernel.Conn, index int, name string) bool {
	l, err := c.LinkByName(name)
	return err == nil && l.Index == index
}

// makePort makes the pair with one message; whatever has one of its names is
// a leftover and goes.
func (w *work) makePort(i int, old kernel.Link, inner *kernel.Conn, node uintptr, want *plan.Port, gso int64) (kernel.Link, error) {
	name := w.link.Device(i)
	if old.Index != 0 {
		if err := w.remove(i); err != nil {
			return old, err
		}
	}
	m := kernel.NewLink(name, "veth", func(m *kernel.Message) {
		m.Nest(vethPeer, func() {
			m.Raw(kernel.LinkHeader(0, 0, 0)).String(unix.IFLA_IFNAME, want.Interface)
			m.Attr(unix.IFLA_ADDRESS, hardware(want))
			m.Uint32(iflaMTU, uint32(want.MTU)).Uint32(unix.IFLA_NET_NS_FD, uint32(node))
			kernel.SetGSO(m, int(gso))
		})
	}).Uint32(iflaMTU, uint32(want.MTU))
	err := w.inside.Do(m)
	if kernel.Exists(err) {
		if squatter, found := inner.LinkByName(want.Interface); found == nil {
			if err := evict(inner, squatter.Index); err != nil {
				return old, fmt.Errorf("delete the old %s: %w", want.Interface, err)
			}
			err = w.inside.Do(m)
		}
	}
	if err != nil {
		return old, fmt.Errorf("make veth %s to %s/%s: %w", name, want.Namespace, want.Interface, err)
	}
	return w.inside.LinkByName(name)
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

// tenantSide sets MTU, segment size and address of the tenant's end.
func tenantSide(c *kernel.Conn, index int, want *plan.Port, gso int64) error {
	l, err := c.LinkByName(want.Interface)
	if err != nil {
		return fmt.Errorf("read %s/%s: %w", want.Namespace, want.Interface, err)
	}
	if !l.Up || l.MTU != want.MTU || int64(l.GSO) != gso {
		m := kernel.UpLink(index).Uint32(iflaMTU, uint32(want.MTU))
		kernel.SetGSO(m, int(gso))
		if err := c.Do(m); err != nil {
			return fmt.Errorf("set up %s/%s: %w", want.Namespace, want.Interface, err)
		}
	}
	if !want.Address.IsValid() { // a switch's
		return nil
	}
	if err := setAddress(c, index, want); err != nil {
		return fmt.Errorf("address %s: %w", want, err)
	}
	return nil
}

// setAddress leaves one address on the interface; what the tenant added with
// another local part stays, unless it passes for ours (port in observe_link.go).
func setAddress(c *kernel.Conn, index int, want *plan.Port) error {
	all, err := c.Addresses(index)
	if err != nil {
		return err
	}
	wanted := kernel.Address{Index: index, Local: want.Address, Reach: want.Reaches(), Metric: want.Metric}
	there := false
	for _, a := range all {
		switch {
		case a == wanted:
			there = true
		case a.Local == want.Address, a.Metric != 0:
			if err := c.DeleteAddress(a); err != nil {
				return err
			}
		}
	}
	if there {
		return c.RestoreRoute(wanted)
	}
	return c.AddAddress(wanted)
}

// shape sets or lifts the rate of end i.
func (w *work) shape(i int, e end) error {
	have, err := w.inside.RootQdisc(e.Index)
	if err != nil {
		return fmt.Errorf("read its queue: %w", err)
	}
	rate := w.link.Ends[i].Rate
	want := shaper(rate, w.mtu(i))
	switch {
	case rate == 0 && have.Handle == 0, have.Kind == "tbf" && isShaper(have.Shaper(), want):
		return nil
	case have.Handle != 0 && (rate == 0 || have.Kind != "tbf"):
		if err := w.inside.DeleteQdisc(e.Index, kernel.TCRoot); err != nil || rate == 0 {
			return err
		}
	}
	if err := w.inside.Do(kernel.SetTBF(e.Index, want)); err != nil {
		return fmt.Errorf("shape to %s: %w", rate, err)
	}
	return nil
}

// Attributes of VXLAN (linux/if_link.h).
const (
	vxlanSources = 10 // struct ifla_vxlan_port_range

	vxlanID, vxlanRemote, vxlanLink, vxlanLocal, vxlanTTL, vxlanTOS, vxlanLearning    = 1, 2, 3, 4, 5, 6, 7
	vxlanPort, vxlanRemote6, vxlanLocal6, vxlanChecksum, vxlanNoSum6Tx, vxlanNoSum6Rx = 15, 16, 17, 18, 19, 20
)

// vxlan is what identifies a tunnel device.
type vxlan struct {
	vni           uint32
	local, remote netip.Addr
	tos           uint8
	sources       [2]uint16 // ports
}

func parseVxlan(data []byte) vxlan {
	var v vxlan
	kernel.EachAttr(data, func(kind uint16, value []byte) {
		switch kind {
		case vxlanID:
			v.vni = binary.NativeEndian.Uint32(value)
		case vxlanRemote, vxlanRemote6:
			v.remote, _ = netip.AddrFromSlice(value)
		case vxlanLocal, vxlanLocal6:
			v.local, _ = netip.AddrFromSlice(value)
		case vxlanSources:
			v.sources = [2]uint16{binary.BigEndian.Uint16(value), binary.BigEndian.Uint16(value[2:])}
		case vxlanTOS:
			v.tos = value[0]
		}
	})
	return v
}
