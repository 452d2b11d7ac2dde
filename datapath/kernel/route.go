package kernel

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// Route is a route through a neighbour on a device, or, if Via is not set, to
// neighbours there.
type Route struct {
	Prefix netip.Prefix
	Via    netip.Addr
	Index  int
	Table  uint32 // 0: main
	TOS    uint8  // ours have none; a tenant's with our protocol number may
	// Nowhere refuses what no route with a smaller metric leads on; it has no device.
	Nowhere bool
}

// metricNowhere has 255 as its first byte, which zebra takes for the distance of a route
// that it finds in the kernel: one with 255 it never uses, nor tells others of
// (netlink_route_change_read_unicast in zebra/rt_netlink.c of FRR).
const metricNowhere = 0xffffffff

// RouteProtocol marks the routes of nodes that are planned (rtnetlink(7),
// rtm_protocol); ip(8) shows it as a number. FRR uses 11 and 186 to 199.
const RouteProtocol = 155

// AddRoute begins a request for a route that carries a protocol number, by
// which its maker finds it again. An equal prefix is replaced.
func AddRoute(r Route, protocol uint8) *Message {
	header := routeHeader(r, protocol)
	header[6], header[7] = unix.RT_SCOPE_LINK, unix.RTN_UNICAST
	if r.Via.IsValid() {
		header[6] = unix.RT_SCOPE_UNIVERSE
		// The neighbour is on-link by its own peer address on that device.
		binary.NativeEndian.PutUint32(header[8:], unix.RTNH_F_ONLINK)
	}
	if r.Nowhere {
		header[6], header[7] = unix.RT_SCOPE_UNIVERSE, unix.RTN_UNREACHABLE
	}
	m := NewMessage(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, header)
	m.Attr(unix.RTA_DST, r.Prefix.Masked().Addr().AsSlice())
	if r.Nowhere {
		return m.Uint32(unix.RTA_PRIORITY, metricNowhere).inTable(r)
	}
	m.Uint32(unix.RTA_OIF, uint32(r.Index))
	if r.Via.IsValid() {
		m.Attr(unix.RTA_GATEWAY, r.Via.AsSlice())
	}
	return m.inTable(r)
}

// inTable names the table of a route, where it is not main.
func (m *Message) inTable(r Route) *Message {
	if r.Table == 0 {
		return m
	}
	return m.Uint32(unix.RTA_TABLE, r.Table)
}

// DeleteRoute begins a request to remove one route to the prefix, of whatever
// kind and however reached: a tenant can use the protocol number too.
func DeleteRoute(r Route, protocol uint8) *Message {
	header := routeHeader(r, protocol)
	header[6], header[7] = unix.RT_SCOPE_NOWHERE, unix.RTN_UNSPEC // any
	m := NewMessage(unix.RTM_DELROUTE, 0, header)
	return m.Attr(unix.RTA_DST, r.Prefix.Masked().Addr().AsSlice()).inTable(r)
}

// routeHeader is a struct rtmsg.
func routeHeader(r Route, protocol uint8) []byte {
	header := make([]byte, 12)
	header[0], header[1], header[3] = family(r.Prefix.Addr()), uint8(r.Prefix.Bits()), r.TOS
	header[4], header[5] = unix.RT_TABLE_MAIN, protocol
	return header
}

// Routes lists the routes of a family in the main table that carry a protocol number.
func (c *Conn) Routes(family, protocol uint8) ([]Route, error) {
	routes, err := c.AllRoutes(family, protocol)
	return slices.DeleteFunc(routes, func(r Route) bool { return r.Table != 0 }), err
}

// AllRoutes lists those of all tables.
func (c *Conn) AllRoutes(family, protocol uint8) ([]Route, error) {
	header := make([]byte, 12)
	header[0], header[5] = family, protocol
	answers, err := c.Dump(NewMessage(unix.RTM_GETROUTE, 0, header))
	if err != nil {
		return nil, err
	}
	var routes []Route
	for _, b := range answers {
		// Kernels before strict checking answer with every protocol.
		if len(b) >= 12 && b[5] == protocol {
			routes = append(routes, parseRoute(b))
		}
	}
	return routes, nil
}

func parseRoute(b []byte) Route {
	r := Route{TOS: b[3], Nowhere: b[7] == unix.RTN_UNREACHABLE}
	dst := netip.IPv4Unspecified()
	if b[0] == unix.AF_INET6 {
		dst = netip.IPv6Unspecified()
	}
	EachAttr(b[12:], func(kind uint16, v []byte) {
		switch kind {
		case unix.RTA_DST:
			dst, _ = netip.AddrFromSlice(v)
		case unix.RTA_GATEWAY:
			r.Via, _ = netip.AddrFromSlice(v)
		case unix.RTA_OIF:
			r.Index = int(uint32Of(v))
		case unix.RTA_TABLE:
			r.Table = uint32Of(v)
		}
	})
	if r.Table == unix.RT_TABLE_MAIN {
		r.Table = 0
	}
	r.Prefix = netip.PrefixFrom(dst, int(b[1]))
	return r
}
