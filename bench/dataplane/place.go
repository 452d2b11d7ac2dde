package main

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

// place is one end of a path under test: an interface in a namespace.
type place struct {
	ns     *os.File
	device string
	addr   netip.Addr
}

// openPlace opens the namespace of a file.
func openPlace(file, device string, addr netip.Addr) (place, error) {
	ns, err := kernel.OpenNamespace(file)
	return place{ns, device, addr}, err
}

// link is the interface.
func (p place) link() (netlink.Link, error) {
	h, err := netlink.NewHandleAt(netns.NsHandle(p.ns.Fd()))
	if err != nil {
		return nil, err
	}
	defer h.Close()
	return h.LinkByName(p.device)
}

// hop is where frames to another place go first.
type hop struct{ from, to net.HardwareAddr }

// hopTo resolves the next hop to another place by sending to it, as any
// program would.
func (p place) hopTo(q place) (hop, error) {
	h, err := netlink.NewHandleAt(netns.NsHandle(p.ns.Fd()))
	if err != nil {
		return hop{}, err
	}
	defer h.Close()
	link, err := h.LinkByName(p.device)
	if err != nil {
		return hop{}, err
	}
	for range 50 {
		if err := p.poke(q); err != nil {
			return hop{}, err
		}
		if to, err := neighbour(h, link, q.addr); err != nil || to != nil {
			return hop{link.Attrs().HardwareAddr, to}, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return hop{}, fmt.Errorf("%s does not find its neighbour towards %s", p.addr, q.addr)
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
func (p place) poke(q place) error {
	fd, err := p.socket(unix.SOCK_DGRAM)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.Sendto(fd, []byte{0}, 0, sockaddr(q.addr, discard))
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH) {
		return nil
	}
	return err
}

// socket opens an IPv4 socket there; its waits are bounded.
func (p place) socket(kind int) (fd int, err error) {
	err = kernel.In(p.ns, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err == nil {
		wait := unix.NsecToTimeval(int64(2 * time.Second))
		err = errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait))
	}
	return fd, err
}

func sockaddr(a netip.Addr, port int) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Addr: a.As4(), Port: port}
}

// discard is the port of RFC 863, to which load is sent; several flows at once
// take this one and those behind it.
const discard = 9
