package lab

import (
	"net/netip"
	"slices"

	"sublet/vnet"
)

// Where switches speak OSPF, every node has an address of its own that stays
// when a link goes: switches' are the relays of explicit multipath, hosts'
// what flows spread over paths are addressed to. Addresses of links are below.
var (
	linkRange   = netip.MustParsePrefix("198.18.0.0/16")
	switchRange = netip.MustParsePrefix("198.19.0.0/17")
	hostRange   = netip.MustParsePrefix("198.19.128.0/17")
	loopRange   = netip.MustParsePrefix("198.19.0.0/16")
)

// Loopback is the address of a node of a lab whose switches speak OSPF.
func Loopback(sub vnet.Substrate, node string) (netip.Addr, bool) {
	if i := slices.Index(sub.Switches, node); i >= 0 {
		return nth(switchRange, i+1), true
	}
	i := slices.IndexFunc(sub.Hosts, func(h vnet.SubstrateNode) bool { return string(h.Name) == node })
	return nth(hostRange, i+1), i >= 0
}

// nth address of a prefix.
func nth(p netip.Prefix, n int) netip.Addr {
	a := p.Addr().As4()
	word := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3]) + uint32(n)
	return netip.AddrFrom4([4]byte{byte(word >> 24), byte(word >> 16), byte(word >> 8), byte(word)})
}

// Meshed says whether some switches have more than one path between them, so
// that there is something to choose: whether links among switches close a
// circle.
func Meshed(sub vnet.Substrate) bool {
	root := make(map[string]string)
	var find func(string) string
	find = func(s string) string {
		if up, known := root[s]; known && up != s {
			root[s] = find(up)
			return root[s]
		}
		return s
	}
	for _, l := range sub.Links {
		if !slices.Contains(sub.Switches, l.Ends[0]) || !slices.Contains(sub.Switches, l.Ends[1]) {
			continue
		}
		a, b := find(l.Ends[0]), find(l.Ends[1])
		if a == b {
			return true
		}
		root[a] = b
	}
	return false
}
