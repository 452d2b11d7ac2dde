package vxrouter

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// parseRoute reads one answer to RTM_GETROUTE; false: of another table, or to
// what is never looked up.
func (f *family) parseRoute(b []byte) (r entry, ok bool) {
	if len(b) < 12 || b[0] != f.af {
		return r, false
	}
	table := uint32(b[4])
	dst := f.unspecified()
	flags := binary.NativeEndian.Uint32(b[8:])
	r.odd = b[2] != 0 || b[3] != 0 || b[7] != unix.RTN_UNICAST || flags&(unix.RTNH_F_LINKDOWN|unix.RTM_F_CLONED) != 0
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
		case unix.RTA_CACHEINFO:
			r.odd = r.odd || len(value) >= 12 && word(value[8:]) != 0 // rta_expires: it ends by itself
		}
		r.odd = r.odd || !slices.Contains(f.plain, kind)
	})
	r.prefix, r.local = netip.PrefixFrom(dst, int(b[1])).Masked(), table == unix.RT_TABLE_LOCAL
	return r, r.prefix.IsValid() && f.forwarded(r.prefix) && (r.local || table == unix.RT_TABLE_MAIN)
}

// parseNeighbour reads a struct ndmsg and its attributes; usable says that the
// stack would send to it without asking.
func parseNeighbour(b []byte) (n neighbour, mac hardware, state uint16, usable bool) {
	if len(b) < 12 || b[0] != unix.AF_INET && b[0] != unix.AF_INET6 {
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
	return n, mac, state, known && state&valid != 0 && n.address.IsValid()
}

func word(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}
