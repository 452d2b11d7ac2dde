package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// makeWires makes all substrate links and shapes them.
func (l *layout) makeWires(ctx context.Context) (notes []string, err error) {
	ns, c, err := openNamespace(l.wires())
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	defer c.Close()
	for i, link := range l.substrate.Links {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := l.makeLink(c, i)
		if errors.Is(err, errNoDelay) {
			err = nil
			if l.delays {
				l.carry(i)
			} else {
				notes = []string{noDelayNote}
			}
		}
		if err != nil {
			return nil, fmt.Errorf("make substrate link %s: %w", link.Name, err)
		}
	}
	return notes, nil
}

// makeLink makes one substrate link, bare or through the wires.
func (l *layout) makeLink(c *kernel.Conn, index int) error {
	if !l.bare {
		return l.makeWire(c, index)
	}
	near, inside, err := openNamespace(l.namespace(l.substrate.Links[index].Ends[0]))
	if err != nil {
		return err
	}
	defer near.Close()
	defer inside.Close()
	return l.makePair(inside, index, 1, l.ports[index][0].Interface)
}

// makeWire joins the two ends of a link through the wires. With errNoDelay the
// link is complete but for its latency.
func (l *layout) makeWire(c *kernel.Conn, index int) error {
	link := l.substrate.Links[index]
	var devices [2]int
	for end := range devices {
		if err := l.makeEnd(c, index, end); err != nil {
			return err
		}
		device, err := c.LinkByName(wire(index, end))
		if err != nil {
			return err
		}
		devices[end] = device.Index
	}
	for end, device := range devices {
		// What comes in by one device leaves, shaped, by the other.
		if err := shape(c, device, plan.WireRate(l.substrate, link.Capacity), l.buffering); err != nil {
			return err
		}
		if err := cross(c, devices[1-end], device); err != nil {
			return err
		}
	}
	if err := c.Do(kernel.UpLink(devices[0]), kernel.UpLink(devices[1])); err != nil {
		return err
	}
	for _, device := range devices {
		if err := delay(c, device, link); err != nil {
			return err
		}
	}
	return nil
}

// makeEnd makes one pair of devices, from the wires to a host or switch.
func (l *layout) makeEnd(c *kernel.Conn, index, end int) error {
	return l.makePair(c, index, end, wire(index, end))
}

// makePair makes a pair of devices: name, here, and the port of one end of a
// link, which is brought up; so is name on a bare link, where it is a port too.
func (l *layout) makePair(c *kernel.Conn, index, end int, name string) error {
	link := l.substrate.Links[index]
	ns, there, err := openNamespace(l.namespace(link.Ends[end]))
	if err != nil {
		return err
	}
	defer ns.Close()
	defer there.Close()
	const vethInfoPeer = 1 // VETH_INFO_PEER, linux/veth.h
	pair := kernel.NewLink(name, "veth", func(m *kernel.Message) {
		m.Nest(vethInfoPeer, func() {
			m.Raw(kernel.LinkHeader(0, 0, 0)).String(unix.IFLA_IFNAME, l.ports[index][end].Interface)
			m.Uint32(unix.IFLA_NET_NS_FD, uint32(ns.Fd())).Uint32(unix.IFLA_MTU, uint32(link.WireMTU()))
			m.String(unix.IFLA_IFALIAS, link.Name)
		})
	})
	pair.Uint32(unix.IFLA_MTU, uint32(link.WireMTU())).String(unix.IFLA_IFALIAS, link.Name)
	if err := c.Do(pair); err != nil {
		return err
	}
	if l.bare {
		near, err := c.LinkByName(name)
		if err != nil {
			return err
		}
		if err := c.Do(kernel.UpLink(near.Index)); err != nil {
			return err
		}
	}
	device, err := there.LinkByName(l.ports[index][end].Interface)
	if err != nil {
		return err
	}
	return there.Do(kernel.UpLink(device.Index))
}

// cross sends what comes in by one device out by the other.
func cross(c *kernel.Conn, from, to int) error {
	program, err := crossing(to, kernel.Handle(1, leasedClass), kernel.Handle(1, restClass))
	if err != nil {
		return err
	}
	defer program.Close()
	if err := c.SetClsact(from); err != nil {
		return err
	}
	return c.Do(kernel.SetFilter(from, program.FD(), "sublet lab wire"))
}

// isLabsOwn says whether a namespace is the wires' or the outside, and not a
// node's: only those hold a '.'.
func isLabsOwn(namespace string) bool { return strings.Contains(namespace, ".") }

// cutWires deletes every device of the wires and with them their peers, now
// rather than when the last user of a namespace is gone.
func cutWires(namespace string) error {
	if !isLabsOwn(namespace) {
		return fmt.Errorf("cut wires: %s holds none", namespace)
	}
	ns, err := kernel.OpenNamespace(filepath.Join(netnsDir, namespace))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer ns.Close()
	c, err := kernel.DialIn(ns)
	if err != nil {
		return err
	}
	defer c.Close()
	links, err := c.Links()
	if err != nil {
		return err
	}
	var indexes []int
	for _, link := range links {
		if link.Kind == "veth" {
			indexes = append(indexes, link.Index)
		}
	}
	if err := c.DeleteLinks(indexes); err != nil {
		return fmt.Errorf("delete %d devices in %s: %w", len(indexes), namespace, err)
	}
	return nil
}
