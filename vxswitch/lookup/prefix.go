package lookup

import (
	"net/netip"
	"slices"

	"sublet/vxswitch"
)

// Prefix forwards by the longest prefix that has the destination's address. Frames to
// group addresses, with which stations find each other, go where Static sends them;
// what has no address goes nowhere. A lookup takes a step for each length of prefix.
type Prefix struct {
	groups  *Static
	lengths []int // longest first
	where   map[netip.Prefix]vxswitch.PortSet
}

// NewPrefix returns a lookup for n ports with these prefixes.
func NewPrefix(n int, stations []Station, prefixes map[netip.Prefix]vxswitch.PortSet) *Prefix {
	p := &Prefix{groups: NewStatic(n, stations), where: make(map[netip.Prefix]vxswitch.PortSet, len(prefixes))}
	for network, out := range prefixes {
		p.where[network.Masked()] = out
		if !slices.Contains(p.lengths, network.Bits()) {
			p.lengths = append(p.lengths, network.Bits())
		}
	}
	slices.SortFunc(p.lengths, func(a, b int) int { return b - a })
	return p
}

// Forward finds where h goes.
func (p *Prefix) Forward(now vxswitch.Time, in int, h *vxswitch.Header, out *vxswitch.PortSet) {
	if h.Dst.Multicast() {
		p.groups.Forward(now, in, h, out)
		return
	}
	for _, bits := range p.lengths {
		network, err := h.DstIP.Prefix(bits)
		if err != nil { // no address, or longer than one of its version
			continue
		}
		if to, ok := p.where[network]; ok {
			*out = to
			break
		}
	}
	if !h.DstIP.IsValid() { // answers of ARP
		if port, ok := p.groups.all.knows(in, h); ok {
			out.Add(port)
		}
	}
	out.Remove(in)
}
