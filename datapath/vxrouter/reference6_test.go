package vxrouter

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// take6 says what becomes of an IPv6 packet's frame, and how it looks then.
func (w *reference) take6(f []byte) (verdict uint32, counted string, out []byte) {
	if binary.BigEndian.Uint16(f[12:]) != 0x86dd || [6]byte(f[:6]) != w.mac {
		return next, "", nil
	}
	ip := f[14:]
	src, dst := netip.AddrFrom16([16]byte(ip[8:24])), netip.AddrFrom16([16]byte(ip[24:40]))
	extension := slices.Contains([]byte{0, 43, 44, 50, 51, 60, 135, 139, 140, 253, 254, 255}, ip[6])
	switch {
	case ip[0]>>4 != 6, int(binary.BigEndian.Uint16(ip[4:]))+40 != len(ip), extension, odd6(dst):
		return next, "unusual", nil
	case ip[7] <= 1:
		return next, "ttl", nil
	case odd6(src):
		return next, "source", nil
	}
	if counted, out = w.forward(f, dst); out == nil {
		return next, counted, nil
	}
	out[21]--
	return redirected, "sent", out
}

func odd6(a netip.Addr) bool {
	first := a.As16()[0]
	return first == 0 || first >= 0xfe
}

// packet6 is a random one that is often forwarded.
func (w *reference) packet6(r *rand.Rand) []byte {
	size := r.IntN(100)
	if r.IntN(20) == 0 {
		size = 1450 + r.IntN(40)
	}
	ip := make([]byte, 40+size)
	for i := range ip {
		ip[i] = byte(r.Uint32())
	}
	ip[0], ip[7] = 0x60|ip[0]&15, byte(r.IntN(70))
	if r.IntN(3) != 0 {
		ip[6] = []byte{6, 17, 58, 47}[r.IntN(4)]
	}
	binary.BigEndian.PutUint16(ip[4:], uint16(size))
	copy(ip[8:], someone(r, "fd00:0::2", "fd00:0::2", "fd00:1::1", "2001:db8::7", "fe80::5"))
	copy(ip[24:], someone(r, "fd00:0::1", "fd00:0::2", "fd00:1::2", "fd00:1::2", "fd09::1", "fd09::1:1", "fd09::2:1", "fd09::3:1", "fd09::4:1", "fd08::5", "fd0a::1", "ff05::2"))
	if r.IntN(10) == 0 { // any bit
		ip[r.IntN(8)] ^= 1 << r.IntN(8)
	}
	return w.framed(r, []byte{0x86, 0xdd}, ip)
}

// table6 is what the test's routes come to: with what the kernel adds for
// its addresses, and without fd0a::/16, which table local hides.
const table6 = "fd00::/128 route,fd00::1/128 route,fd00::2/128 route,fd00::/64 unresolved,fd00:1::/128 route,fd00:1::1/128 route,fd00:1::/64 unresolved,fd00:1::2/128," +
	"fd09::/64,fd09::1:0/112 route,fd09::2:0/112 route,fd09::3:0/112 route,fd09::4:0/112 unresolved,fd0a::/16 route,fd08::/64 unresolved,fd08::5/128"

// The program does with random and malformed IPv6 packets what its reference model does.
func TestIPv6AgainstReference(t *testing.T) {
	b := newBench(t)
	r, _, _ := crossing6(b)
	key := r.Key()
	for _, line := range []string{
		"fd09::/64 via fd00:1::2 dev eth1", "blackhole fd09::1:0/112", "fd09::2:0/112 via fd00::2 dev eth0",
		"fd09::3:0/112 nexthop via fd00::2 dev eth0 nexthop via fd00:1::2 dev eth1",
		"fd09::4:0/112 via fd00:1::250 dev eth1", "fd08::/64 dev eth1", "local fd0a::/16 dev lo", "fd0a::/64 via fd00:1::2 dev eth1",
	} {
		b.ip(key, append([]string{"-6", "route", "add"}, strings.Fields(line)...)...)
	}
	b.ip(key, "-6", "neigh", "add", "fd08::5", "dev", "eth1", "lladdr", "02:00:00:00:08:05", "nud", "permanent")
	b.poll("all neighbours", func() bool {
		return b.macTo(r, "fd09::1") != "" && b.macTo(r, "fd08::5") != "" && b.macTo(r, "fd00:1::2") != "" && b.macTo(r, "fd09::2:1") != ""
	})
	mac, err := net.ParseMAC(b.macTo(r, "fd09::1"))
	b.check(err)
	w, index := b.referenceOf(r, hardware(mac), table6)
	want := b.compare(ipv6, r, index, w.packet6, w.take6)
	if len(want) != 7 {
		t.Errorf("the packets did only %v", slices.Sorted(maps.Keys(want)))
	}
}
