package vxrouter

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// family is IPv4 or IPv6, as far as their forwarding differs here.
type family struct {
	name  string
	af    uint8
	bits  int // of an address
	rules int // with which every namespace begins
	// plain are the attributes of a route that change nothing for a packet
	// that is forwarded (linux/rtnetlink.h).
	plain []uint16
	// oneTrie: tables local and main are looked up as one; else what table
	// local has of a prefix hides all that main has of it.
	oneTrie bool
}

var (
	ipv4 = &family{
		name: "IPv4", af: unix.AF_INET, bits: 32, rules: 3, oneTrie: true,
		plain: []uint16{unix.RTA_DST, unix.RTA_OIF, unix.RTA_GATEWAY, unix.RTA_PRIORITY, unix.RTA_PREFSRC, unix.RTA_TABLE},
	}
	ipv6 = &family{
		name: "IPv6", af: unix.AF_INET6, bits: 128, rules: 2,
		plain: []uint16{
			unix.RTA_DST, unix.RTA_OIF, unix.RTA_GATEWAY, unix.RTA_PRIORITY, unix.RTA_PREFSRC, unix.RTA_TABLE,
			unix.RTA_CACHEINFO, unix.RTA_PREF, // ages and routers' preference: of routes with others beside them
		},
	}
)

func familyOf(a netip.Addr) *family {
	if a.Is4() {
		return ipv4
	}
	return ipv6
}

func (f *family) unspecified() netip.Addr {
	if f == ipv4 {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// header begins a request of size bytes about the family.
func (f *family) header(size int) []byte {
	b := make([]byte, size)
	b[0] = f.af
	return b
}

// address reads one of the family's.
func (f *family) address(b []byte) (a netip.Addr, ok bool) {
	a, ok = netip.AddrFromSlice(b)
	return a, ok && a.BitLen() == f.bits
}

// forwarded says that the program looks addresses of a prefix up at all: its
// ordinary and ordinary6.
func (f *family) forwarded(p netip.Prefix) bool {
	first := p.Addr().AsSlice()[0]
	return p.Bits() < 8 || first != 0 && (f == ipv4 && first != 127 && first < 224 || f == ipv6 && first < 0xfe)
}

// key is a prefix as the program's tables have it: struct key or key6.
func key(p netip.Prefix) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(p.Bits()))
	return append(b, p.Masked().Addr().AsSlice()...)
}

// prefixOf reads what key wrote.
func prefixOf(key []byte) netip.Prefix {
	a, _ := netip.AddrFromSlice(key[4:])
	return netip.PrefixFrom(a, int(binary.NativeEndian.Uint32(key)))
}
