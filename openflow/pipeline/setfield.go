package pipeline

import (
	"encoding/binary"

	"sublet/openflow/of13"
)

// setField sets a field of a packet that has it; others stay as they are.
func (p *packet) setField(f *of13.Field) (has bool) {
	p.fresh()
	if f.ID == of13.TunnelID {
		p.key.set(f.ID, f.Value.Lo)
		return true
	}
	ctx := p.context()
	if len(p.b) < 14 || !ctx.Allows(f.ID) {
		return false
	}
	var value [16]byte
	b := value[:of13.Fields[f.ID].Bytes]
	f.Value.Put(b)
	switch {
	case f.ID >= of13.NSHFlags:
		return p.setNSH(f.ID, uint32(f.Value.Lo))
	case f.ID <= of13.VLANPCP && p.headless:
		return false
	case f.ID <= of13.VLANPCP:
		p.setEthernet(f.ID, b)
	case f.ID >= of13.ARPOp && f.ID <= of13.ARPTHA:
		p.setARP(f.ID, b)
	case f.ID >= of13.MPLSLabel && f.ID <= of13.PBBISID:
		p.setShim(f.ID, uint32(f.Value.Lo))
	case f.ID >= of13.TCPSrc && f.ID <= of13.ICMPv4Code, f.ID >= of13.ICMPv6Type && f.ID <= of13.NDTLL:
		p.setTransport(f.ID, b)
	default:
		p.setIP(f.ID, b)
	}
	return true
}

// context is what prerequisites ask of a packet. Fields of a header that is cut
// off are not there.
func (p *packet) context() of13.Context {
	ctx := of13.NewContext()
	ctx.InPort, ctx.VLAN = true, p.key.Get(of13.VLANVID) != 0
	if p.l3 == 0 {
		return ctx
	}
	kind := uint16(p.key.Get(of13.EthType))
	if ctx.Headless = p.headless; !p.whole(kind) {
		return ctx
	}
	ctx.EthType = kind
	if p.protoAt > 0 {
		ctx.IPProto = int(p.proto())
	}
	if p.l4 > 0 && ctx.IPProto == 58 {
		ctx.ICMPv6Type = int(p.b[p.l4])
	}
	return ctx
}

func (p *packet) setEthernet(id of13.FieldID, b []byte) {
	switch id {
	case of13.EthDst:
		p.write(0, b)
	case of13.EthSrc:
		p.write(6, b)
	case of13.EthType:
		p.write(p.typeAt, b)
	case of13.VLANVID, of13.VLANPCP:
		p.setTag(id, b)
	}
}

func (p *packet) setTag(id of13.FieldID, b []byte) {
	if p.key.Get(of13.VLANVID) == 0 {
		return
	}
	tci := p.u16(14)
	if id == of13.VLANVID {
		tci = tci&0xf000 | binary.BigEndian.Uint16(b)&0xfff
	} else {
		tci = tci&0x1fff | uint16(b[0])<<13
	}
	binary.BigEndian.PutUint16(p.b[14:], tci)
	p.stale = true
}

var atARP = map[of13.FieldID]int{of13.ARPOp: 6, of13.ARPSHA: 8, of13.ARPSPA: 14, of13.ARPTHA: 18, of13.ARPTPA: 24}

func (p *packet) setARP(id of13.FieldID, b []byte) { p.write(p.l3+atARP[id], b) }

// setShim sets parts of the first word behind the type of Ethernet.
func (p *packet) setShim(id of13.FieldID, v uint32) {
	shift := map[of13.FieldID]int{of13.MPLSLabel: 12, of13.MPLSTC: 9, of13.MPLSBOS: 8}[id]
	mask := uint32(of13.Ones(of13.Fields[id].Bits).Lo) << shift
	word := p.u32(p.l3)&^mask | v<<shift
	binary.BigEndian.PutUint32(p.b[p.l3:], word)
	p.stale = true
}

func (p *packet) setIP(id of13.FieldID, b []byte) {
	v4 := p.key.Get(of13.EthType) == 0x0800
	switch id {
	case of13.IPv4Src:
		p.write(p.l3+12, b, p.l3+sumIPv4, p.sumAt(true))
	case of13.IPv4Dst:
		p.write(p.l3+16, b, p.l3+sumIPv4, p.sumAt(true))
	case of13.IPv6Src:
		p.write(p.l3+8, b, p.sumAt(true))
	case of13.IPv6Dst:
		if p.routed {
			p.write(p.l3+24, b)
		} else {
			p.write(p.l3+24, b, p.sumAt(true))
		}
	case of13.IPv6FLabel:
		binary.BigEndian.PutUint32(p.b[p.l3:], p.u32(p.l3)&^0xfffff|binary.BigEndian.Uint32(b))
		p.stale = true
	case of13.IPProto:
		p.setProto(b, v4)
	case of13.IPDSCP:
		p.setClass(b[0]<<2|byte(p.key.Get(of13.IPECN)), v4)
	case of13.IPECN:
		p.setClass(byte(p.key.Get(of13.IPDSCP))<<2|b[0], v4)
	}
}

// setProto sets the protocol, which is in the low half of a word of the pseudo
// header of checksums. Where they are follows from the protocol as it was.
func (p *packet) setProto(b []byte, v4 bool) {
	if !p.has(p.protoAt, 1) {
		return
	}
	p.adjust(p.sumAt(true), uint16(p.b[p.protoAt]), uint16(b[0]))
	if v4 {
		p.write(p.protoAt, b, p.l3+sumIPv4)
	} else {
		p.write(p.protoAt, b)
	}
}

// setClass sets DSCP and ECN together.
func (p *packet) setClass(class byte, v4 bool) {
	if v4 {
		p.write(p.l3+1, []byte{class}, p.l3+sumIPv4)
		return
	}
	binary.BigEndian.PutUint32(p.b[p.l3:], p.u32(p.l3)&^(0xff<<20)|uint32(class)<<20)
	p.stale = true
}

func (p *packet) setTransport(id of13.FieldID, b []byte) {
	at := 0
	switch id {
	case of13.TCPSrc, of13.UDPSrc, of13.SCTPSrc, of13.ICMPv4Type, of13.ICMPv6Type:
		at = p.l4
	case of13.TCPDst, of13.UDPDst, of13.SCTPDst:
		at = p.l4 + 2
	case of13.ICMPv4Code, of13.ICMPv6Code:
		at = p.l4 + 1
	case of13.NDTarget:
		at = p.l4 + 8
	default:
		if p.has(p.l4, 24) {
			at = p.linkAddress()
		}
	}
	switch {
	case p.l4 == 0 || at == 0 || !p.has(at, len(b)):
	case p.proto() == 132:
		p.sctp(at, b)
	default:
		p.write(at, b, p.sumAt(false))
	}
}
