package pipeline

import (
	"encoding/binary"

	"sublet/openflow/of13"
)

// Service headers (RFC 8300): a base header of 4 bytes, path identifier and index, and
// metadata, which is 16 bytes of context in type 1.
const (
	nshBase    = 8 // bytes without metadata
	nshContext = 24
	nshTTL     = 63 // of a new one

	nextIPv4     = 1
	nextIPv6     = 2
	nextEthernet = 3
	nextNSH      = 4
)

// nshLen is the length of a service header at an offset; 0: there is none that is whole
// and of a known type.
func (p *packet) nshLen(at int) int {
	if !p.has(at, nshBase) || p.b[at]>>6 != 0 {
		return 0
	}
	n := int(p.b[at+1]&63) * 4
	if kind := p.b[at+2] & 15; !p.has(at, n) || !(kind == 1 && n == nshContext || kind == 2 && n >= nshBase) {
		return 0
	}
	return n
}

// service reads the fields of a service header.
func (p *packet) service() {
	at := p.l3
	n := p.nshLen(at)
	if n == 0 {
		return
	}
	k, first, path := &p.key, uint64(p.u32(at)), uint64(p.u32(at+4))
	k.put(of13.NSHFlags, first>>28&3)
	k.put(of13.NSHTTL, first>>22&63)
	k.put(of13.NSHMDType, first>>8&15)
	k.put(of13.NSHNP, first&255)
	k.put(of13.NSHSPI, path>>8)
	k.put(of13.NSHSI, path&255)
	if p.b[at+2]&15 != 1 {
		return
	}
	for i := range of13.FieldID(4) {
		k.put(of13.NSHC1+i, uint64(p.u32(at+nshBase+4*int(i))))
	}
}

// atNSH is where in a service header a field is: a word, and its lowest bit there.
var atNSH = map[of13.FieldID]struct{ word, shift int }{
	of13.NSHFlags: {0, 28}, of13.NSHTTL: {0, 22}, of13.NSHSPI: {4, 8}, of13.NSHSI: {4, 0},
	of13.NSHC1: {8, 0}, of13.NSHC2: {12, 0}, of13.NSHC3: {16, 0}, of13.NSHC4: {20, 0},
}

// NSHWord is where in a service header a field is that can be set, as bits of a word at
// an offset.
func NSHWord(id of13.FieldID) (offset, shift int, mask uint32) {
	at, bits := atNSH[id], of13.Fields[id].Bits
	if id == of13.NSHFlags {
		bits = 2
	}
	return at.word, at.shift, uint32(of13.Ones(bits).Lo) << at.shift
}

// setNSH sets a field of a service header that has it.
func (p *packet) setNSH(id of13.FieldID, v uint32) (has bool) {
	if id >= of13.NSHC1 && id <= of13.NSHC4 && p.key.Get(of13.NSHMDType) != 1 {
		return false
	}
	offset, shift, mask := NSHWord(id)
	word := p.b[p.l3+offset:]
	binary.BigEndian.PutUint32(word, binary.BigEndian.Uint32(word)&^mask|v<<shift&mask)
	p.stale = true
	return true
}

// appendNSH appends a new service header: path 0, the highest index.
func appendNSH(b []byte, kind, next uint8) []byte {
	n := nshBase
	if kind == 1 {
		n = nshContext
	}
	b = binary.BigEndian.AppendUint32(b, nshTTL<<22|uint32(n/4)<<16|uint32(kind&15)<<8|uint32(next))
	b = binary.BigEndian.AppendUint32(b, 255)
	return append(b, make([]byte, n-nshBase)...)
}

// wrap puts a header in front of a packet, or takes its outermost one away. It is false
// if that cannot be done: such packets do not go on.
func (p *packet) wrap(a *of13.Action) bool {
	switch {
	case a.Type == of13.ActionEncap && a.Packet == of13.PacketNSH:
		return p.pushNSH(a.MDType)
	case a.Type == of13.ActionEncap:
		was := p.headless // Ethernet does not go in front of Ethernet
		p.headless = false
		return was
	case !p.headless:
		return p.popEthernet() && p.becomes(a)
	}
	return p.popNSH() && p.becomes(a)
}

// becomes says whether a packet is of the type that a decap says.
func (p *packet) becomes(a *of13.Action) bool {
	is := of13.PacketEthernet
	if p.headless {
		is = 1<<16 | uint32(p.u16(12))
	}
	return a.Packet == of13.PacketNext || a.Packet == is
}

// pushNSH puts a service header in front. Without another Ethernet in front of that, a
// packet cannot leave.
func (p *packet) pushNSH(kind uint8) bool {
	next := uint8(nextEthernet)
	if p.headless {
		next = map[uint16]uint8{0x0800: nextIPv4, 0x86dd: nextIPv6, of13.EthTypeNSH: nextNSH}[p.u16(12)]
	}
	h := appendNSH(nil, kind, next)
	at, n := 14, len(h)
	if !p.headless {
		at, n = 0, n+14
	}
	if next == 0 || !p.insert(at, n) {
		return false
	}
	p.put16(12, of13.EthTypeNSH)
	copy(p.b[14:], h)
	p.headless = true
	return true
}

// popEthernet takes Ethernet away, unless there are tags behind it.
func (p *packet) popEthernet() bool {
	if p.l3 != 14 {
		return false
	}
	clear(p.b[:12])
	p.headless, p.stale = true, true
	return true
}

// popNSH takes a service header away.
func (p *packet) popNSH() bool {
	n := 0
	if p.u16(12) == of13.EthTypeNSH {
		n = p.nshLen(14)
	}
	if n == 0 {
		return false
	}
	switch p.b[14+3] {
	case nextEthernet:
		if p.remove(0, 14+n); !p.has(0, 14) {
			return false
		}
		p.headless = false
		return true
	case nextIPv4:
		p.put16(12, 0x0800)
	case nextIPv6:
		p.put16(12, 0x86dd)
	case nextNSH:
	default:
		return false
	}
	p.remove(14, n)
	return true
}

// decNSH decreases the time to live of a service header, if there is one. It is false if
// the packet may not go on.
func (s *Switch) decNSH(r *run) bool {
	r.packet.fresh()
	if ctx := r.context(); ctx.EthType != of13.EthTypeNSH {
		return true
	}
	if s.trace != nil && r.did.noted {
		s.trace.fix(of13.NSHTTL)
	}
	ttl := r.key.Get(of13.NSHTTL)
	if ttl <= 1 {
		return s.invalidTTL(r)
	}
	less := of13.Exact(of13.NSHTTL, ttl-1)
	s.setField(r, &less)
	return true
}

// checkService checks actions on service headers, and what is known of packets behind them.
func checkService(a *of13.Action, ctx *of13.Context) error {
	switch {
	case a.Type == of13.ActionDecNSHTTL:
		if ctx.EthType != of13.EthTypeNSH {
			return of13.BadActionMatchInconsistent
		}
	case a.Type == of13.ActionDecap && !ctx.Headless:
		ctx.Headless, ctx.VLAN = true, false
	case a.Type == of13.ActionDecap:
		*ctx = of13.Context{InPort: ctx.InPort, IPProto: -1, ICMPv6Type: -1}
	case a.Packet == of13.PacketEthernet:
		ctx.Headless = false
	case a.Packet != of13.PacketNSH || a.MDType != 1 && a.MDType != 2:
		return of13.BadActionBadArgument
	default:
		*ctx = of13.Context{InPort: ctx.InPort, Headless: true, EthType: of13.EthTypeNSH, IPProto: -1, ICMPv6Type: -1}
	}
	return nil
}
