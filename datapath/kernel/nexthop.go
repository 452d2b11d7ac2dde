package kernel

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// NextHop is what the kernel's tables say of a destination now.
type NextHop struct {
	Via  netip.Addr // next hop; the destination itself if it is on the link
	MTU  int        // that the route bears; 0: the device's
	Down bool       // the device has no carrier
}

// rtnhDown are RTNH_F_DEAD and RTNH_F_LINKDOWN.
const rtnhDown = unix.RTNH_F_DEAD | unix.RTNH_F_LINKDOWN

// rtmFibMatch is RTM_F_FIB_MATCH (linux/rtnetlink.h): answer with the table's
// entry instead of what is made of it.
const rtmFibMatch = 0x2000

// RouteTo asks how packets from a local address to another leave by a device;
// an error if they do not. An interface without a route is not taken for a
// link on which everybody is, as the kernel does where only the device is asked
// for.
func (c *Conn) RouteTo(to, from netip.Addr, index int) (NextHop, error) {
	if _, err := c.route(to, from, index, rtmFibMatch); err != nil {
		return NextHop{}, err
	}
	b, err := c.route(to, from, index, 0)
	if err != nil {
		return NextHop{}, err
	}
	if b[7] != unix.RTN_UNICAST {
		return NextHop{}, unix.EHOSTUNREACH
	}
	w := NextHop{Via: to, Down: binary.NativeEndian.Uint32(b[8:])&rtnhDown != 0}
	device := 0
	EachAttr(b[12:], func(kind uint16, v []byte) {
		switch kind {
		case unix.RTA_OIF:
			device = int(uint32Of(v))
		case unix.RTA_GATEWAY:
			w.Via, _ = netip.AddrFromSlice(v)
		case unix.RTA_VIA: // family in two bytes, then an address of it
			w.Via, _ = netip.AddrFromSlice(v[min(2, len(v)):])
		case unix.RTA_METRICS:
			w.MTU = int(uint32Of(attr(v, unix.RTAX_MTU)))
		}
	})
	if device != index {
		return NextHop{}, unix.EHOSTUNREACH
	}
	return w, nil
}

// LeadsBy says whether packets for an address that nobody binds to a device leave by one.
func (c *Conn) LeadsBy(to, from netip.Addr, index int) bool {
	b, err := c.route(to, from, 0, 0)
	return err == nil && int(uint32Of(attr(b[12:], unix.RTA_OIF))) == index
}

// route asks for one route; the answer has a struct rtmsg at least.
func (c *Conn) route(to, from netip.Addr, index int, flags uint32) ([]byte, error) {
	header := make([]byte, 12)
	header[0], header[1], header[2] = family(to), uint8(to.BitLen()), uint8(from.BitLen())
	binary.NativeEndian.PutUint32(header[8:], flags)
	m := NewMessage(unix.RTM_GETROUTE, 0, header).Attr(unix.RTA_DST, to.AsSlice())
	b, err := c.Get(m.Attr(unix.RTA_SRC, from.AsSlice()).Uint32(unix.RTA_OIF, uint32(index)))
	if err == nil && len(b) < 12 {
		err = unix.EHOSTUNREACH
	}
	return b, err
}

// HasRoute says whether packets to an address of IPv4 have a route that is not
// known to be dead.
func (c *Conn) HasRoute(to netip.Addr) (bool, error) {
	header := make([]byte, 12) // struct rtmsg
	header[0], header[1] = family(to), uint8(to.BitLen())
	b, err := c.Get(NewMessage(unix.RTM_GETROUTE, 0, header).Attr(unix.RTA_DST, to.AsSlice()))
	switch {
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH),
		errors.Is(err, unix.EINVAL), errors.Is(err, unix.EACCES): // the latter two: blackhole, prohibit
		return false, nil
	case err != nil || len(b) < 12:
		return false, err
	}
	return binary.NativeEndian.Uint32(b[8:])&rtnhDown == 0, nil
}

// AllDevices is the number that Forwards takes for the namespace's own setting.
const AllDevices = -1

// Attributes of RTM_GETNETCONF (linux/netconf.h).
const netconfIndex, netconfForwarding = 1, 2

// Forwards says whether packets of IPv4 that come in by a device are forwarded;
// of AllDevices, what net.ipv4.ip_forward is.
func (c *Conn) Forwards(index int) (bool, error) {
	header := []byte{unix.AF_INET, 0, 0, 0} // struct netconfmsg, padded
	b, err := c.Get(NewMessage(unix.RTM_GETNETCONF, 0, header).Uint32(netconfIndex, uint32(index)))
	if err != nil || len(b) < 4 {
		return false, err
	}
	return uint32Of(attr(b[4:], netconfForwarding)) != 0, nil
}

// Neighbour is an entry of a device's neighbour table.
type Neighbour struct {
	Address [6]byte
	State   uint16 // NUD_*
	Managed bool   // the kernel keeps it resolved by itself
	Learned bool   // entered from outside, see AddNeighbour
}

// Usable says that packets can be sent to it now.
func (n Neighbour) Usable() bool {
	const usable = unix.NUD_REACHABLE | unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE | unix.NUD_PERMANENT
	return n.State&usable != 0
}

// NDA_FLAGS_EXT and NTF_EXT_MANAGED (linux/neighbour.h, Linux 5.16).
const (
	ndaFlagsExt   = 15
	ntfExtManaged = 1
)

// neighbourHeader is a struct ndmsg.
func neighbourHeader(a netip.Addr, index int, state uint16, flags uint8) []byte {
	b := make([]byte, 12)
	b[0] = family(a)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	binary.NativeEndian.PutUint16(b[8:], state)
	b[10] = flags
	return b
}

// NeighbourOf reads one neighbour; NotFound tells that there is none.
func (c *Conn) NeighbourOf(a netip.Addr, index int) (Neighbour, error) {
	m := NewMessage(unix.RTM_GETNEIGH, 0, neighbourHeader(a, index, 0, 0))
	b, err := c.Get(m.Attr(unix.NDA_DST, a.AsSlice()))
	if err != nil || len(b) < 12 {
		return Neighbour{}, err
	}
	n := Neighbour{State: binary.NativeEndian.Uint16(b[8:]), Learned: b[10]&unix.NTF_EXT_LEARNED != 0}
	EachAttr(b[12:], func(kind uint16, v []byte) {
		switch kind {
		case unix.NDA_LLADDR:
			copy(n.Address[:], v)
		case ndaFlagsExt:
			n.Managed = uint32Of(v)&ntfExtManaged != 0
		}
	})
	return n, nil
}

// KeepNeighbour begins a request that makes the kernel resolve a neighbour at
// once and keep it resolved, with traffic or without, and whatever others take of the
// table of neighbours (AddNeighbour).
func KeepNeighbour(a netip.Addr, index int) *Message {
	m := NewMessage(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, neighbourHeader(a, index, unix.NUD_NONE, unix.NTF_USE|unix.NTF_EXT_LEARNED))
	return m.Attr(unix.NDA_DST, a.AsSlice()).Uint32(ndaFlagsExt, ntfExtManaged)
}

// AddNeighbour begins a request that enters a neighbour as one to be asked again once
// it is used, unless it is known. Entries from outside (NTF_EXT_LEARNED) are not counted
// in the table that all namespaces of a machine share, and do not leave it for others.
// What the neighbour says of itself changes them.
func AddNeighbour(a netip.Addr, index int, hardware [6]byte) *Message {
	m := NewMessage(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE, neighbourHeader(a, index, unix.NUD_STALE, unix.NTF_EXT_LEARNED))
	return m.Attr(unix.NDA_DST, a.AsSlice()).Attr(unix.NDA_LLADDR, hardware[:])
}

// UseNeighbour makes the kernel find out whether a neighbour is there, as a packet to it
// would. It stays entered from outside if it was.
func (c *Conn) UseNeighbour(a netip.Addr, index int) error {
	flags := uint8(unix.NTF_USE)
	if was, err := c.NeighbourOf(a, index); err == nil && was.Learned {
		flags |= unix.NTF_EXT_LEARNED
	}
	m := NewMessage(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, neighbourHeader(a, index, unix.NUD_NONE, flags))
	return c.Do(m.Attr(unix.NDA_DST, a.AsSlice()))
}

// LeaveNeighbour begins a request that ends KeepNeighbour: the entry stays,
// as long as it is used.
func LeaveNeighbour(a netip.Addr, index int) *Message {
	m := NewMessage(unix.RTM_NEWNEIGH, unix.NLM_F_REPLACE, neighbourHeader(a, index, unix.NUD_NONE, unix.NTF_USE))
	return m.Attr(unix.NDA_DST, a.AsSlice())
}

// Listen opens a socket on which the kernel tells of changes to links,
// addresses, routes and neighbours of the calling thread's namespace. Reads
// wait for a tenth of a second. A read that fails with ENOBUFS missed some.
func Listen() (int, error) {
	return listenTo(1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_NEIGH-1) |
		1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV4_ROUTE-1) |
		1<<(unix.RTNLGRP_IPV6_IFADDR-1) | 1<<(unix.RTNLGRP_IPV6_ROUTE-1))
}
