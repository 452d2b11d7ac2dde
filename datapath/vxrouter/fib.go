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

// hop is a next hop.
type nextHop struct {
	via   netip.Addr
	index int
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

// fib reads the routes of OSPF that a router's kernel has. A router that is
// gone has none.
func (p *Part) fib(key string) (table, error) {
	c, err := p.host.Dial(key)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.Foreign = true
	header := make([]byte, 12)
	header[0], header[5] = unix.AF_INET, protocolOSPF
	answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETROUTE, 0, header))
	if err != nil {
		return nil, fmt.Errorf("read routes: %w", err)
	}
	fib := make(table)
	for _, b := range answers {
		if len(b) >= 12 && b[5] == protocolOSPF && b[4] == unix.RT_TABLE_MAIN && b[7] == unix.RTN_UNICAST {
			if prefix, hops := parseHops(b); len(hops) > 0 {
				fib[prefix] = sorted(hops)
			}
		}
	}
	return fib, nil
}

// parseHops reads the prefix of a route of IPv4 and its next hops that are alive.
func parseHops(b []byte) (netip.Prefix, []nextHop) {
	dst, one := netip.IPv4Unspecified(), nextHop{}
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

// routeMessage installs a route as zebra does.
func routeMessage(prefix netip.Prefix, hops []nextHop) *kernel.Message {
	header := make([]byte, 12) // struct rtmsg
	header[0], header[1] = unix.AF_INET, uint8(prefix.Bits())
	header[4], header[5] = unix.RT_TABLE_MAIN, protocolOSPF
	header[6], header[7] = unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST
	m := kernel.NewMessage(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, header)
	m.Attr(unix.RTA_DST, prefix.Addr().AsSlice()).Uint32(unix.RTA_PRIORITY, metricOSPF)
	var list []byte
	for _, h := range hops {
		next := make([]byte, 8) // struct rtnexthop and an attribute of 8
		binary.NativeEndian.PutUint16(next, 16)
		next[2] = unix.RTNH_F_ONLINK
		binary.NativeEndian.PutUint32(next[4:], uint32(h.index))
		next = binary.NativeEndian.AppendUint16(next, 8)
		next = binary.NativeEndian.AppendUint16(next, unix.RTA_GATEWAY)
		list = append(list, append(next, h.via.AsSlice()...)...)
	}
	return m.Attr(unix.RTA_MULTIPATH, list)
}
