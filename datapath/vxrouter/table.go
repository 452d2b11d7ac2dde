package vxrouter

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"sublet/datapath/bpf"
)

// fallbacks names the reasons for which the program leaves a packet to the
// stack.
var fallbacks = bpf.EnumNames(loadFastpath, "fallback", "FALLBACK_")

// maxLocals is how many addresses of its router the program knows.
const maxLocals = len(fastpathState{}.Locals)

// view is what the kernel of a router's namespace says of forwarding, of one
// family.
type view struct {
	*family
	most       int          // routes, and neighbours, that are copied
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
	less bool   // than the device's: the family has one of its own
	slot uint32 // in the lease's fabric; 0: it is not the lease's
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

// chosen is what the kernel would use of each prefix. One of several with a
// class of service makes all of its prefix odd, and so do two that are equal:
// the kernel has reasons of its own for one of them.
func (v view) chosen() map[netip.Prefix]entry {
	best := make(map[netip.Prefix]entry, len(v.routes))
	for _, r := range v.routes {
		have, there := best[r.prefix]
		order := r.before(have)
		switch {
		case r.dead:
			continue
		case !there, order < 0:
			r.odd = r.odd || there && have.odd
			best[r.prefix] = r
		case order == 0, r.odd:
			have.odd = true
			best[r.prefix] = have
		}
	}
	if !v.oneTrie {
		v.hide(best)
	}
	return best
}

// hide takes out what table local hides of table main.
func (v view) hide(best map[netip.Prefix]entry) {
	var wide []netip.Prefix
	for p, r := range best {
		if r.local && !p.IsSingleIP() {
			wide = append(wide, p)
		}
	}
	for p, r := range best {
		if !r.local && slices.ContainsFunc(wide, func(w netip.Prefix) bool { return w.Bits() < p.Bits() && w.Contains(p.Addr()) }) {
			delete(best, p)
		}
	}
}

// nexthops is the program's table: every prefix, and on on-link prefixes every
// neighbour that is known.
func (v view) nexthops() map[netip.Prefix]fastpathNexthop {
	best := v.chosen()
	table := make(map[netip.Prefix]fastpathNexthop, len(best)+len(v.neighbours))
	for prefix, r := range best {
		table[prefix] = v.nexthop(r)
	}
	lengths := lengthsOf(best)
	for n, mac := range v.neighbours {
		r, ok := match(best, lengths, n.address)
		if ok && !r.odd && !r.local && !r.via.IsValid() && r.index == n.index && !r.prefix.IsSingleIP() {
			if out, ok := v.ports[r.index]; ok {
				table[netip.PrefixFrom(n.address, v.bits)] = out.to(n.index, mac)
			}
		}
	}
	return table
}

// lengthsOf lists the lengths of prefixes that there are, the longest first.
func lengthsOf(best map[netip.Prefix]entry) []int {
	there := make(map[int]bool)
	for p := range best {
		there[p.Bits()] = true
	}
	return slices.SortedFunc(maps.Keys(there), func(a, b int) int { return b - a })
}

// match finds the longest prefix that holds an address.
func match(best map[netip.Prefix]entry, lengths []int, a netip.Addr) (entry, bool) {
	for _, bits := range lengths {
		if r, ok := best[netip.PrefixFrom(a, bits).Masked()]; ok {
			return r, true
		}
	}
	return entry{}, false
}

func (v view) nexthop(r entry) fastpathNexthop {
	out, ok := v.ports[r.index]
	if r.odd || r.local || !ok {
		return fastpathNexthop{Why: uint32(fastpathFallbackFALLBACK_ROUTE)}
	}
	next := r.via
	if !next.IsValid() {
		if !r.prefix.IsSingleIP() {
			return fastpathNexthop{Why: uint32(fastpathFallbackFALLBACK_UNRESOLVED)}
		}
		next = r.prefix.Addr()
	}
	mac, known := v.neighbours[neighbour{r.index, next}]
	if !known {
		return fastpathNexthop{Why: uint32(fastpathFallbackFALLBACK_UNRESOLVED)}
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

// to is the next hop by a port to a neighbour.
func (p port) to(index int, mac hardware) fastpathNexthop {
	w := fastpathNexthop{Out: uint32(index), Mtu: uint32(p.mtu), Slot: p.slot}
	if p.less {
		w.Why = uint32(fastpathFallbackFALLBACK_SIZE)
	}
	copy(w.Macs[:6], mac[:])
	copy(w.Macs[6:], p.mac[:])
	return w
}

// ip4 is an address as it lies in memory.
func ip4(a netip.Addr) uint32 {
	b := a.As4()
	return binary.NativeEndian.Uint32(b[:])
}
