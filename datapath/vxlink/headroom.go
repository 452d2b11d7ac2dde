package vxlink

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

// A packet that a node makes has room for the headers of the node's interface
// and no more, so that each would be copied for the tunnel's. What a bridge
// needs in front of packets, its ports reserve in their other ends too
// (ndo_set_rx_headroom); a bridge needs what its neediest port needs. So the
// ports of a lease with tunnels are in a bridge with a VXLAN device over IPv6,
// which needs 70 bytes (over IPv4, where there is no IPv6: 50); with the Ethernet
// header and rounding, that is room for the 74 of NSH too. Both are down for good: a bridge that is down forwards
// nothing, and programs take every frame before it. On a kernel without either,
// packets are copied.
const (
	headroomBridge = "headroom"
	headroomNeed   = "room"
)

// Attributes of a VXLAN device (linux/if_link.h); it is never up, so its
// number and address mean nothing.
const vxlanID, vxlanPort, vxlanLocal6 = 1, 15, 17

// headroom makes the bridge and puts the ports there are into it.
func (w *work) headroom() error {
	bridge, err := w.inside.LinkByName(headroomBridge)
	if kernel.NotFound(err) {
		if err = w.inside.Do(kernel.NewLink(headroomBridge, "bridge", nil)); err != nil {
			return unlessLacking(err)
		}
		bridge, err = w.inside.LinkByName(headroomBridge)
	}
	if err == nil && bridge.Up {
		err = w.inside.Do(kernel.DownLink(bridge.Index))
	}
	if err != nil {
		return err
	}
	if _, err = w.inside.LinkByName(headroomNeed); !kernel.NotFound(err) {
		return err
	}
	if w.need(bridge.Index, true) != nil {
		if err := w.need(bridge.Index, false); err != nil {
			return unlessLacking(err)
		}
	}
	return w.joinAll(bridge.Index)
}

// need makes the device that needs the headroom.
func (w *work) need(bridge int, ip6 bool) error {
	device := kernel.NewLink(headroomNeed, "vxlan", func(m *kernel.Message) {
		m.Uint32(vxlanID, 1).Uint16BE(vxlanPort, bpf.PortVXLAN)
		if ip6 {
			m.Attr(vxlanLocal6, net.IPv6loopback)
		}
	})
	return w.inside.Do(device.Uint32(unix.IFLA_MASTER, uint32(bridge)))
}

// unlessLacking forgives that a kernel does not know a kind of device.
func unlessLacking(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// joinAll puts the lease's ports into the bridge. One that cannot, because the
// bridge has 1,023 ports, stays as it is.
func (w *work) joinAll(bridge int) error {
	devices, err := w.inside.Links()
	for _, d := range devices {
		if _, _, ok := parseDevice(d.Name); ok {
			w.join(d.Index, bridge)
		}
	}
	return err
}

func (w *work) join(index, bridge int) {
	_ = w.inside.Do(kernel.ChangeLink(index).Uint32(unix.IFLA_MASTER, uint32(bridge)))
}

// reserve lets a new port's node reserve headroom, if the lease has tunnels.
func (w *work) reserve(index int) {
	if bridge, err := w.inside.LinkByName(headroomBridge); err == nil {
		w.join(index, bridge.Index)
	}
}
