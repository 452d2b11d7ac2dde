package overlay

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/vnet"
)

// protocol says how packets of one tunnel protocol look behind the outer IP
// header. Adding a protocol is adding a row to protocols.
type protocol struct {
	name   vnet.Encapsulation
	kind   uint32 // in the keys of receiving ends
	layer  uint8  // of what is inside: 2 or 3
	next   uint8  // IP protocol; 0: that of what is inside
	port   uint16 // UDP destination; 0: no UDP header
	header []byte // with identifier 0 and, for layer 3, IPv4 inside
	id     int    // offset of 32 bits in header whose upper 24 are the identifier; none: told by the sender
	flow   int    // offset of a byte in header that may vary with the flow; none
	rooted bool   // over UDP from ports that only root of a host has: leases can have it
	stack  bool   // the host's stack puts headers on and takes them off
	words  words
	check  check
}

// words are what names the inner protocol, if layer is 3.
type words struct {
	at     int // offset in header; none: in the IP header, or nowhere
	v4, v6 uint16
}

// check is what a receiver looks at besides the identifier.
type check struct {
	match, mask uint32 // of the first four bytes
	vary        int    // offset of a byte that counts four-byte units of header; none
	units, less uint8  // its bits, and how many units header has of them
	at          int    // offset of one more byte
	value       byte   // that it must have
	next        int    // offset of a byte with the IP protocol inside
}

const none = -1

// Numbers of protocols and ports assigned by IANA.
const (
	ipInIP, ip6InIP   = unix.IPPROTO_IPIP, unix.IPPROTO_IPV6
	typeIP4, typeIP6  = unix.ETH_P_IP, unix.ETH_P_IPV6
	nshIndex          = 255 // where a service path begins (RFC 8300 section 2.3)
	nshEthernet       = 3
	greKey            = 1 << 16
	greEthernet       = unix.ETH_P_TEB
	gueHeader, noWord = 4, none
)

var protocols = []protocol{
	{
		name: vnet.VXLAN, kind: uint32(overlayKindKIND_VXLAN), layer: 2, next: unix.IPPROTO_UDP, port: bpf.PortVXLAN,
		header: []byte{8, 0, 0, 0, 0, 0, 0, 0}, id: 4, flow: none, rooted: true, words: words{at: none},
		check: check{match: 0x08000000, mask: 0xffffffff, vary: none, at: none, next: none},
	}, {
		// The same on a port of its own, where the kernel's device listens.
		name: vnet.KernelVXLAN, kind: uint32(overlayKindKIND_STACK), layer: 2, next: unix.IPPROTO_UDP, port: bpf.PortStack,
		header: []byte{8, 0, 0, 0, 0, 0, 0, 0}, id: 4, flow: none, rooted: true, stack: true, words: words{at: none},
		check: check{match: 0x08000000, mask: 0xffffffff, vary: none, at: none, next: none},
	}, {
		// VXLAN-GPE with instance and protocol bits, NSH next; NSH with TTL 63,
		// six words, metadata type 1, Ethernet inside.
		name: vnet.NSH, kind: 2, layer: 2, next: unix.IPPROTO_UDP, port: bpf.PortVXLANGPE,
		header: append([]byte{0x0c, 0, 0, 4, 0, 0, 0, 0, 0x0f, 0xc6, 1, nshEthernet, 0, 0, 0, nshIndex}, make([]byte, 16)...),
		id:     12, flow: none, words: words{at: none},
		check: check{match: 0x0c000004, mask: 0xffffffff, vary: 9, units: 0x3f, less: 6, at: 11, value: nshEthernet, next: none},
	}, {
		// Options are passed over, unless one is critical; control packets are none of ours.
		name: vnet.Geneve, kind: 3, layer: 2, next: unix.IPPROTO_UDP, port: bpf.PortGeneve,
		header: []byte{0, 0, 0x65, 0x58, 0, 0, 0, 0}, id: 4, flow: none, rooted: true, words: words{at: none},
		check: check{match: 0x00006558, mask: 0xc0c0ffff, vary: 0, units: 0x3f, at: none, next: none},
	}, {
		name: vnet.NVGRE, kind: 4, layer: 2, next: unix.IPPROTO_GRE,
		header: []byte{0x20, 0, 0x65, 0x58, 0, 0, 0, 0}, id: 4, flow: 7, words: words{at: none},
		check: check{match: 0x20006558, mask: 0xffffffff, vary: none, at: none, next: none},
	}, {
		name: vnet.GRETAP, kind: 5, layer: 2, next: unix.IPPROTO_GRE,
		header: []byte{0, 0, 0x65, 0x58}, id: none, flow: none, words: words{at: none},
		check: check{match: 0x00006558, mask: 0xffffffff, vary: none, at: none, next: none},
	}, {
		name: vnet.GRE, kind: 6, layer: 3, next: unix.IPPROTO_GRE,
		header: []byte{0, 0, 8, 0}, id: none, flow: none, words: words{at: 2, v4: typeIP4, v6: typeIP6},
		check: check{match: 0, mask: 0xffff0000, vary: none, at: none, next: none},
	}, {
		name: vnet.IPIP, kind: 7, layer: 3, id: none, flow: none, words: words{at: none, v4: ipInIP, v6: ip6InIP},
		check: check{vary: none, at: none, next: none},
	}, {
		name: vnet.GUE, kind: 8, layer: 3, next: unix.IPPROTO_UDP, port: bpf.PortGUE,
		header: []byte{0, ipInIP, 0, 0}, id: none, flow: none, words: words{at: 0, v4: ipInIP, v6: ip6InIP},
		check: check{match: 0, mask: 0xe000ffff, vary: 0, units: 0x1f, at: none, next: 1},
	}, {
		name: vnet.LISP, kind: 9, layer: 3, next: unix.IPPROTO_UDP, port: bpf.PortLISP,
		header: []byte{8, 0, 0, 0, 0, 0, 0, 0}, id: 4, flow: none, words: words{at: none},
		check: check{match: 0x08000000, mask: 0xff000000, vary: none, at: none, next: none},
	},
}

// protocolOf finds a row; the empty name is VXLAN.
func protocolOf(name vnet.Encapsulation) (*protocol, error) {
	if name == "" {
		name = vnet.VXLAN
	}
	for i := range protocols {
		if protocols[i].name == name {
			return &protocols[i], nil
		}
	}
	return nil, fmt.Errorf("tunnel protocol %q is unknown", name)
}

// rows are the keys and rows by which overlay_rx knows a protocol.
func (p *protocol) rows() map[uint32]overlayFormat {
	rows := make(map[uint32]overlayFormat)
	switch {
	case p.port != 0:
		rows[uint32(p.next)<<24|uint32(p.port)] = p.format(0)
	case p.next == 0:
		rows[ipInIP<<24], rows[ip6InIP<<24] = p.format(4), p.format(6)
	case p.layer == 3:
		rows[uint32(p.next)<<24|typeIP4], rows[uint32(p.next)<<24|typeIP6] = p.format(4), p.format(6)
	case p.id != none:
		rows[uint32(p.next)<<24|greKey|greEthernet] = p.format(0)
	default:
		rows[uint32(p.next)<<24|greEthernet] = p.format(0)
	}
	return rows
}

// offset in a row; 0xff: none.
func offset(at int) uint8 { return uint8(at) }

func (p *protocol) format(version uint8) overlayFormat {
	f := overlayFormat{
		Kind: p.kind, Layer: p.layer, Length: uint8(len(p.header)), IdAt: offset(p.id), IdShift: 8,
		VaryAt: offset(p.check.vary), VaryMask: p.check.units, VaryLess: p.check.less,
		Match: inMemory32(p.check.match), Mask: inMemory32(p.check.mask),
		CheckAt: offset(p.check.at), Check: p.check.value, NextAt: offset(p.check.next), Version: version,
	}
	if p.port != 0 {
		f.Udp = udpSize
	}
	if p.stack {
		f.Stack = 1
	}
	return f
}

// inMemory32 and inMemory16 are numbers of network order as the machine loads
// them.
func inMemory32(v uint32) uint32 {
	return binary.NativeEndian.Uint32(binary.BigEndian.AppendUint32(nil, v))
}

func inMemory16(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}
