package vxrouter

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// Reasons for which the program leaves a packet to the stack: its enum pass.
const (
	passOff = iota
	passStale
	passHook
	passUnusual
	passTTL
	passSource
	passRoute
	passUnresolved
	passSize
)

// passes names the reasons, by number.
var passes = []string{"off", "stale", "hook", "unusual", "ttl", "source", "route", "unresolved", "size"}

// maxRoutes and maxLocals are the program's.
const (
	maxRoutes = 65536
	maxLocals = 8
)

// view is what the kernel of a router's namespace says of IPv4 forwarding.
type view struct {
	ports      map[int]port // veths that lead out of the namespace, up
	routes     []entry
	neighbours map[neighbour]hardware // usable ones
	locals     []netip.Addr
}

type hardware [6]byte

type port struct {
	name string
	mac  hardware
	mtu  int
}

// neighbour is an address on a device.
type neighbour struct {
	index   int
	address netip.Addr
}

// entry is one line of the kernel's tables local and main.
type entry struct {
	prefix   netip.Prefix
	local    bool // of table local
	odd      bool // what the program does not carry: another type, several ways, a class of service, ...
	dead     bool // the kernel skips it
	priority uint32
	via      netip.Addr // zero: on-link
	index    int
}

// before says that the kernel takes a before b, of the same prefix.
func (a entry) before(b entry) int {
	if a.local != b.local {
		if a.local {
			return -1
		}
		return 1
	}
	return int(int64(a.priority) - int64(b.priority))
}

// chosen is what the kernel would use of each prefix; one of several with a
// class of service makes all of its prefix odd.
func (v view) chosen() map[netip.Prefix]entry {
	best := make(map[netip.Prefix]entry, len(v.routes))
	for _, r := range v.routes {
		have, there := best[r.prefix]
		switch {
		case r.dead:
			continue
		case !there, r.before(have) < 0:
			r.odd = r.odd || there && have.odd
			best[r.prefix] = r
		case r.odd:
			have.odd = true
			best[r.prefix] = have
		}
	}
	return best
}

// ways is the program's table: every prefix, and on on-link prefixes every
// neighbour that is known.
func (v view) ways() map[shortKey]shortWay {
	best := v.chosen()
	table := make(map[shortKey]shortWay, len(best)+len(v.neighbours))
	for prefix, r := range best {
		table[keyOf(prefix)] = v.way(r)
	}
	for n, mac := range v.neighbours {
		r, ok := match(best, n.address)
		if ok && !r.odd && !r.local && !r.via.IsValid() && r.index == n.index && !r.prefix.IsSingleIP() {
			if out, ok := v.ports[r.index]; ok {
				table[keyOf(netip.PrefixFrom(n.address, 32))] = out.to(n.index, mac)
			}
		}
	}
	return table
}

// match finds the longest prefix that holds an address.
func match(best map[netip.Prefix]entry, a netip.Addr) (entry, bool) {
	for bits := 32; bits >= 0; bits-- {
		if r, ok := best[netip.PrefixFrom(a, bits).Masked()]; ok {
			return r, true
		}
	}
	return entry{}, false
}

func (v view) way(r entry) shortWay {
	out, ok := v.ports[r.index]
	if r.odd || r.local || !ok {
		return shortWay{Why: passRoute}
	}
	next := r.via
	if !next.IsValid() {
		if !r.prefix.IsSingleIP() {
			return shortWay{Why: passUnresolved}
		}
		next = r.prefix.Addr()
	}
	mac, known := v.neighbours[neighbour{r.index, next}]
	if !known {
		return shortWay{Why: passUnresolved}
	}
	return out.to(r.index, mac)
}

// wanted lists the neighbours that routes lead to: they are kept known.
func (v view) wanted() map[neighbour]bool {
	list := make(map[neighbour]bool)
	for _, r := range v.chosen() {
		if _, ok := v.ports[r.index]; !ok || r.odd || r.local {
			continue
		}
		if r.via.IsValid() {
			list[neighbour{r.index, r.via}] = true
		} else if r.prefix.IsSingleIP() {
			list[neighbour{r.index, r.prefix.Addr()}] = true
		}
	}
	return list
}

// to is the way by a port to a neighbour.
func (p port) to(index int, mac hardware) shortWay {
	w := shortWay{Out: uint32(index), Mtu: uint32(p.mtu)}
	copy(w.Macs[:6], mac[:])
	copy(w.Macs[6:], p.mac[:])
	return w
}

func keyOf(p netip.Prefix) shortKey {
	return shortKey{Bits: uint32(p.Bits()), Address: ip4(p.Masked().Addr())}
}

// ip4 is an address as it lies in memory.
func ip4(a netip.Addr) uint32 {
	b := a.As4()
	return binary.NativeEndian.Uint32(b[:])
}

// plain are the attributes of a route that change nothing for a packet that is
// forwarded (linux/rtnetlink.h).
var plain = []uint16{unix.RTA_DST, unix.RTA_OIF, unix.RTA_GATEWAY, unix.RTA_PRIORITY, unix.RTA_PREFSRC, unix.RTA_TABLE}

// parseRoute reads one answer to RTM_GETROUTE; false: of another table.
func parseRoute(b []byte) (r entry, ok bool) {
	if len(b) < 12 || b[0] != unix.AF_INET {
		return r, false
	}
	table := uint32(b[4])
	dst := netip.IPv4Unspecified()
	flags := binary.NativeEndian.Uint32(b[8:])
	r.odd = b[2] != 0 || b[3] != 0 || b[7] != unix.RTN_UNICAST || flags&unix.RTNH_F_LINKDOWN != 0
	r.dead = flags&unix.RTNH_F_DEAD != 0
	kernel.EachAttr(b[12:], func(kind uint16, value []byte) {
		switch kind {
		case unix.RTA_TABLE:
			table = word(value)
		case unix.RTA_DST:
			dst, _ = netip.AddrFromSlice(value)
		case unix.RTA_GATEWAY:
			r.via, _ = netip.AddrFromSlice(value)
		case unix.RTA_OIF:
			r.index = int(word(value))
		case unix.RTA_PRIORITY:
			r.priority = word(value)
		}
		r.odd = r.odd || !slices.Contains(plain, kind)
	})
	r.prefix, r.local = netip.PrefixFrom(dst, int(b[1])).Masked(), table == unix.RT_TABLE_LOCAL
	return r, table == unix.RT_TABLE_LOCAL || table == unix.RT_TABLE_MAIN
}

// parseNeighbour reads a struct ndmsg and its attributes; usable says that the
// stack would send to it without asking.
func parseNeighbour(b []byte) (n neighbour, mac hardware, state uint16, usable bool) {
	if len(b) < 12 || b[0] != unix.AF_INET {
		return n, mac, 0, false
	}
	n.index = int(int32(binary.NativeEndian.Uint32(b[4:])))
	state = binary.NativeEndian.Uint16(b[8:])
	known := false
	kernel.EachAttr(b[12:], func(kind uint16, value []byte) {
		switch kind {
		case unix.NDA_DST:
			n.address, _ = netip.AddrFromSlice(value)
		case unix.NDA_LLADDR:
			if len(value) == 6 {
				mac, known = hardware(value), true
			}
		}
	})
	const valid = unix.NUD_PERMANENT | unix.NUD_REACHABLE | unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE
	return n, mac, state, known && state&valid != 0 && n.address.Is4()
}

func word(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}
