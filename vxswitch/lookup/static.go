package lookup

import (
	"fmt"
	"math/bits"
	"net/netip"

	"sublet/vxswitch"
)

// Static forwards to the port each MAC address was given; group addresses go
// to all ports but their own, others nowhere. O(1).
type Static struct {
	Ports map[vxswitch.MAC]int
	All   vxswitch.PortSet
}

// Forward finds where h goes.
func (s *Static) Forward(_ vxswitch.Time, in int, h *vxswitch.Header, out *vxswitch.PortSet) {
	if h.Dst.Multicast() {
		*out = s.All
		out.Remove(in)
	} else if p, ok := s.Ports[h.Dst]; ok && p != in {
		out.Add(p)
	}
}

// Prefixes forwards by the longest prefix of the IP destination. A lookup is
// one hash lookup for each prefix length in use, at most 33 or 129.
type Prefixes struct {
	ports   map[netip.Prefix]int
	lengths [2][3]uint64 // in use, IPv4 and IPv6
}

// NewPrefixes returns a lookup with these routes.
func NewPrefixes(routes map[netip.Prefix]int) (*Prefixes, error) {
	p := &Prefixes{ports: map[netip.Prefix]int{}}
	for r, port := range routes {
		if !r.IsValid() || port < 0 || port >= vxswitch.MaxPorts {
			return nil, fmt.Errorf("route %v to port %d: name a prefix and a port", r, port)
		}
		r = r.Masked()
		if other, ok := p.ports[r]; ok && other != port {
			return nil, fmt.Errorf("route %v goes to port %d and to port %d: one is possible", r, other, port)
		}
		p.ports[r] = port
		p.lengths[family(r.Addr())][r.Bits()>>6] |= 1 << (r.Bits() & 63)
	}
	return p, nil
}

// Forward finds where h goes, also back to where it came from: that is what a
// route says.
func (p *Prefixes) Forward(_ vxswitch.Time, _ int, h *vxswitch.Header, out *vxswitch.PortSet) {
	if !h.DstIP.IsValid() {
		return
	}
	lengths := &p.lengths[family(h.DstIP)]
	for w := len(lengths) - 1; w >= 0; w-- {
		for m := lengths[w]; m != 0; {
			top := 63 - bits.LeadingZeros64(m)
			m &^= 1 << top
			r, _ := h.DstIP.Prefix(w<<6 + top)
			if port, ok := p.ports[r]; ok {
				out.Add(port)
				return
			}
		}
	}
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}
