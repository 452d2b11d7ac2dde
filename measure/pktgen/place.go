// Package pktgen loads a path between two interfaces on one machine as hard as
// its processors can, and says what arrives: frames of any size from a packet
// socket, counted and dropped at the last device, a TCP stream, round trips.
// All work is pinned to processors the caller names, and rates are per second
// of their time, so that other work on the machine does not change them.
package pktgen

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// Place is one end of a path under test: an interface in a namespace.
type Place struct {
	NS     *os.File
	Device string
	Addr   netip.Addr
	// Processes that forward between two places and whose time counts, on the
	// sender's place.
	Processes []int
}

// Open opens a place by the file of its namespace.
func Open(file, device string, addr netip.Addr) (Place, error) {
	ns, err := kernel.OpenNamespace(file)
	return Place{NS: ns, Device: device, Addr: addr}, err
}

// Link is the interface.
func (p Place) Link() (netlink.Link, error) {
	h, err := netlink.NewHandleAt(netns.NsHandle(p.NS.Fd()))
	if err != nil {
		return nil, err
	}
	defer h.Close()
	return h.LinkByName(p.Device)
}

// hop is where frames to another place go first.
type hop struct{ from, to net.HardwareAddr }

// hopTo resolves the next hop to another place by sending to it, as any
// program would.
func (p Place) hopTo(q Place) (hop, error) {
	h, err := netlink.NewHandleAt(netns.NsHandle(p.NS.Fd()))
	if err != nil {
		return hop{}, err
	}
	defer h.Close()
	link, err := h.LinkByName(p.Device)
	if err != nil {
		return hop{}, err
	}
	for range 200 {
		if err := p.poke(q); err != nil {
			return hop{}, err
		}
		if to, err := neighbour(h, link, q.Addr); err != nil || to != nil {
			return hop{link.Attrs().HardwareAddr, to}, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return hop{}, fmt.Errorf("%s does not find its neighbour towards %s", p.Addr, q.Addr)
}

// neighbour is the hardware address of the next hop to an address; nil if it
// is not known yet.
func neighbour(h *netlink.Handle, link netlink.Link, to netip.Addr) (net.HardwareAddr, error) {
	routes, err := h.RouteGet(to.AsSlice())
	if err != nil || len(routes) == 0 {
		return nil, err
	}
	next := net.IP(to.AsSlice())
	if routes[0].Gw != nil {
		next = routes[0].Gw
	}
	all, err := h.NeighList(link.Attrs().Index, netlink.FAMILY_V4)
	for _, n := range all {
		if n.IP.Equal(next) && len(n.HardwareAddr) == 6 {
			return n.HardwareAddr, nil
		}
	}
	return nil, err
}

// poke sends one datagram.
func (p Place) poke(q Place) error {
	fd, err := p.socket(unix.SOCK_DGRAM)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.Sendto(fd, []byte{0}, 0, sockaddr(q.Addr, Discard))
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH) {
		return nil
	}
	return err
}

// socket opens an IPv4 socket there; its waits are bounded.
func (p Place) socket(kind int) (fd int, err error) {
	err = kernel.In(p.NS, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err == nil {
		wait := unix.NsecToTimeval(int64(10 * time.Second))
		err = errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait))
	}
	return fd, err
}

func sockaddr(a netip.Addr, port int) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Addr: a.As4(), Port: port}
}

// Discard is the port of RFC 863, to which load is sent; several flows at once
// take this one and those behind it.
const Discard = 9
