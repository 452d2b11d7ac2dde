package vxrouter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// nextHop is one of a route's, with the kernel's number of the route's protocol.
type nextHop struct {
	via      netip.Addr
	index    int
	protocol uint8
}

// table has the next hops of each prefix, sorted.
type table map[netip.Prefix][]nextHop

func sorted(hops []nextHop) []nextHop {
	slices.SortFunc(hops, func(a, b nextHop) int {
		if a.index != b.index {
			return a.index - b.index
		}
		return a.via.Compare(b.via)
	})
	return slices.Compact(hops)
}

// fib reads the routes of zebra that a router's kernel has, of both families. A
// router that is gone has none.
func (p *Part) fib(key string) (table, error) { return p.routesOf(key, protocols) }

// routesOf are those of some protocols.
func (p *Part) routesOf(key string, protocols []uint8) (table, error) {
	c, err := p.host.Dial(key)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.Foreign = true
	fib := make(table)
	for _, f := range []*family{ipv4, ipv6} {
		for _, protocol := range protocols {
			header := f.header(12)
			header[5] = protocol
			answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETROUTE, 0, header))
			if err != nil {
				return nil, fmt.Errorf("read routes: %w", err)
			}
			for _, b := range answers {
				fib.add(f, b, protocol)
			}
		}
	}
	return fib, nil
}

// add takes a route of a family that the kernel told of, if it is a protocol's.
func (t table) add(f *family, b []byte, protocol uint8) {
	if len(b) < 12 || b[0] != f.af || b[5] != protocol || b[4] != unix.RT_TABLE_MAIN || b[7] != unix.RTN_UNICAST {
		return
	}
	prefix, hops := f.parseHops(b)
	for i := range hops {
		hops[i].protocol = protocol
	}
	if len(hops) > 0 {
		t[prefix] = sorted(append(t[prefix], hops...)) // of IPv6 each may be a route
	}
}

// parseHops reads the prefix of a route and its next hops that are alive.
func (f *family) parseHops(b []byte) (netip.Prefix, []nextHop) {
	dst, one := f.unspecified(), nextHop{}
	var hops []nextHop
	kernel.EachAttr(b[12:], func(kind uint16, v []byte) {
		switch kind {
		case unix.RTA_DST:
			dst, _ = netip.AddrFromSlice(v)
		case unix.RTA_GATEWAY:
			one.via, _ = netip.AddrFromSlice(v)
		case unix.RTA_OIF:
			one.index = int(word(v))
		case unix.RTA_MULTIPATH:
			hops = parseMultipath(v)
		}
	})
	if hops == nil && one.via.IsValid() && binary.NativeEndian.Uint32(b[8:])&unix.RTNH_F_DEAD == 0 {
		hops = []nextHop{one}
	}
	return netip.PrefixFrom(dst, int(b[1])), hops
}

// parseMultipath reads a list of struct rtnexthop.
func parseMultipath(b []byte) (hops []nextHop) {
	for len(b) >= 8 {
		size := int(binary.NativeEndian.Uint16(b))
		if size < 8 || size > len(b) {
			break
		}
		h := nextHop{index: int(int32(binary.NativeEndian.Uint32(b[4:])))}
		kernel.EachAttr(b[8:size], func(kind uint16, v []byte) {
			if kind == unix.RTA_GATEWAY {
				h.via, _ = netip.AddrFromSlice(v)
			}
		})
		if b[2]&unix.RTNH_F_DEAD == 0 && h.via.IsValid() {
			hops = append(hops, h)
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return hops
}

// routeMessage installs a route as zebra does, but for its metric.
func routeMessage(prefix netip.Prefix, hops []nextHop, metric uint32) *kernel.Message {
	header := familyOf(prefix.Addr()).header(12) // struct rtmsg
	header[1], header[4], header[5] = uint8(prefix.Bits()), unix.RT_TABLE_MAIN, hops[0].protocol
	header[6], header[7] = unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST
	m := kernel.NewMessage(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, header)
	m.Attr(unix.RTA_DST, prefix.Addr().AsSlice()).Uint32(unix.RTA_PRIORITY, metric)
	var list []byte
	for _, h := range hops {
		via := h.via.AsSlice()
		next := make([]byte, 8) // struct rtnexthop and an attribute
		binary.NativeEndian.PutUint16(next, uint16(12+len(via)))
		next[2] = unix.RTNH_F_ONLINK
		binary.NativeEndian.PutUint32(next[4:], uint32(h.index))
		next = binary.NativeEndian.AppendUint16(next, uint16(4+len(via)))
		next = binary.NativeEndian.AppendUint16(next, unix.RTA_GATEWAY)
		list = append(list, append(next, via...)...)
	}
	return m.Attr(unix.RTA_MULTIPATH, list)
}
