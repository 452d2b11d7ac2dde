package pipeline

import "sublet/openflow/of13"

// Bits of IPV6_EXTHDR.
const (
	extNoNext = 1 << iota
	extESP
	extAuth
	extDest
	extFrag
	extRouter
	extHop
	extRepeated
	extUnordered
)

// maxExtensions bounds the headers that are followed.
const maxExtensions = 16

// extension is what is to know of a header: its bit, and its place in the order
// that RFC 8200 recommends (destination options may also come last).
var extension = map[byte]struct {
	bit   uint64
	order int
}{0: {extHop, 1}, 60: {extDest, 2}, 43: {extRouter, 3}, 44: {extFrag, 4}, 51: {extAuth, 5}, 50: {extESP, 6}, 59: {extNoNext, 8}}

func (p *packet) ipv6() {
	k, at := &p.key, p.l3
	k.put128(of13.IPv6Src, of13.ReadU128(p.b[at+8:at+24]))
	k.put128(of13.IPv6Dst, of13.ReadU128(p.b[at+24:at+40]))
	class := uint64(p.u32(at)>>20) & 0xff
	k.put(of13.IPDSCP, class>>2)
	k.put(of13.IPECN, class&3)
	k.put(of13.IPv6FLabel, uint64(p.u32(at)&0xfffff))
	p.protoAt = at + 6
	w := extensions{p: p, at: at + 40, proto: p.b[at+6]}
	for n := 0; n < maxExtensions && w.next(); n++ {
	}
	k.put(of13.IPv6ExtHdr, w.bits)
	k.put(of13.IPProto, uint64(w.proto))
	if !w.later {
		p.transport(w.at, w.proto)
	}
}

// extensions is a walk along the headers between IPv6 and the protocol above it.
type extensions struct {
	p     *packet
	at    int
	proto byte
	bits  uint64
	order int
	dests int
	later bool // a fragment other than the first
}

// next takes one header, if there is one that can be passed.
func (w *extensions) next() bool {
	e, known := extension[w.proto]
	if !known {
		return false
	}
	w.count(e.bit, e.order)
	if w.proto == 50 || w.proto == 59 || !w.p.has(w.at, 8) {
		return false
	}
	length := int(w.p.b[w.at+1])*8 + 8
	switch w.proto {
	case 44:
		length = 8
		w.later = w.p.u16(w.at+2)&^7 != 0
		w.p.part = w.p.part || w.p.u16(w.at+2)&^6 != 0
	case 51:
		length = int(w.p.b[w.at+1])*4 + 8
	case 43:
		w.p.routed = w.p.b[w.at+3] > 0
	}
	w.p.protoAt, w.proto = w.at, w.p.b[w.at]
	w.at += length
	return true
}

func (w *extensions) count(bit uint64, order int) {
	if bit == extDest {
		w.dests++
		if w.dests == 2 || w.order > order {
			order = 7
		}
	}
	if w.bits&bit != 0 && (bit != extDest || w.dests > 2) {
		w.bits |= extRepeated
	}
	if order < w.order {
		w.bits |= extUnordered
	}
	w.bits |= bit
	w.order = max(w.order, order)
}
