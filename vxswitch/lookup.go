package vxswitch

import (
	"math/bits"
	"net/netip"
)

// MAC is a hardware address.
type MAC [6]byte

// Multicast says whether a is a group address; broadcast is one.
func (a MAC) Multicast() bool { return a[0]&1 != 0 }

// Header is what the two lookups may look at. lookup.Parse fills it from a
// frame; a simulator fills what its lookups need.
type Header struct {
	Dst, Src   MAC
	EtherType  uint16 // after the VLAN tag
	VLAN       uint16 // VLAN ID; 0: untagged or priority-tagged
	SrcIP      netip.Addr
	DstIP      netip.Addr
	DSCP       uint8
	Proto      uint8 // IP protocol
	SrcPort    uint16
	DstPort    uint16
	VNI, Label uint32 // of VXLAN and the top MPLS label, where HasVNI, HasLabel
	HasVNI     bool
	HasLabel   bool
	Target     netip.Addr // whose hardware address an ARP request or a neighbour solicitation asks for
}

// AnyPort in a Claim: whatever physical port the frame came in by.
const AnyPort = -1

// Field is what a Claim looks at. Where several claims match a frame the
// lower Field wins, then the longer prefix, then one that names a port.
type Field uint8

// The fields of lookup 1 (Anhalt, thesis, section 4.3.3).
const (
	ByVNI Field = iota
	ByLabel
	ByVLAN
	ByMAC    // source address
	ByPrefix // destination address
	ByDSCP
	ByPort // everything from the port
	numFields
)

// Claim says that frames with one value in one field belong to a virtual switch.
type Claim struct {
	By     Field
	Port   int    // physical input port, or AnyPort (not with ByPort)
	Value  uint32 // VNI, label, VLAN ID or DSCP
	MAC    MAC
	Prefix netip.Prefix
}

// Forwarder is a virtual switch's own lookup: ports are the switch's, not the
// physical ones. It must be O(1) or O(log n), and allocate only to learn.
type Forwarder interface {
	// Forward adds the outputs of a frame that came in by port in to out;
	// none: the frame is dropped (NoRoute). The engine removes what the
	// forwarding matrix forbids.
	Forward(now Time, in int, h *Header, out *PortSet)
}

// MaxPorts is the most ports a switch can have.
const MaxPorts = 256

// PortSet is a set of ports.
type PortSet [MaxPorts / 64]uint64

// Add puts port i into the set.
func (s *PortSet) Add(i int) { s[i>>6] |= 1 << (i & 63) }

// Remove takes port i out.
func (s *PortSet) Remove(i int) { s[i>>6] &^= 1 << (i & 63) }

// Has says whether i is in the set.
func (s *PortSet) Has(i int) bool { return s[i>>6]>>(i&63)&1 != 0 }

// Empty says whether nothing is in the set.
func (s *PortSet) Empty() bool { return *s == PortSet{} }

// Next returns the smallest port in the set that is at least i, or -1.
func (s *PortSet) Next(i int) int {
	for w := i >> 6; w < len(s); w++ {
		if m := s[w] >> (i & 63) << (i & 63); m != 0 {
			return w<<6 + bits.TrailingZeros64(m)
		}
		i = (w + 1) << 6
	}
	return -1
}
