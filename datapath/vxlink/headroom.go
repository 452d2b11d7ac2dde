package vxlink

import (
	"errors"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// A packet that a node makes has room for the headers of the node's interface
// and no more, so that each would be copied for the tunnel's. What a bridge
// needs in front of packets, its ports reserve in their other ends too
// (ndo_set_rx_headroom); a bridge needs what its neediest port needs. So the
// ports of a lease with tunnels are in a bridge with a VXLAN device, which
// needs 64 bytes. Both are down for good: a bridge that is down forwards
// nothing, and programs take every frame before it. On a kernel without either,
// packets are copied.
const (
	headroomBridge = "headroom"
	headroomNeed   = "room"
)

// Attributes of a VXLAN device (linux/if_link.h); it is never up, so its
// number means nothing.
const vxlanID, vxlanPort, tunnelPort = 1, 15, 4789

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
	need := kernel.NewLink(headroomNeed, "vxlan", func(m *kernel.Message) {
		m.Uint32(vxlanID, 1).Uint16BE(vxlanPort, tunnelPort)
	})
	if err := w.inside.Do(need.Uint32(unix.IFLA_MASTER, uint32(bridge.Index))); err != nil {
		return unlessLacking(err)
	}
	return w.joinAll(bridge.Index)
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
