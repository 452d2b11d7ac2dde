package pipeline

import (
	"encoding/binary"

	"sublet/openflow/of13"
)

func (p *packet) put16(at int, v uint16) { binary.BigEndian.PutUint16(p.b[at:], v) }

// pushVLAN puts a tag directly behind the addresses; it has the identifier and
// priority of the tag that was there, else 0.
func (p *packet) pushVLAN(kind uint16) {
	tci := uint16(0)
	if p.key.Get(of13.VLANVID) != 0 {
		tci = p.u16(14)
	}
	if p.insert(12, 4) {
		p.put16(12, kind)
		p.put16(14, tci)
	}
}

func (p *packet) popVLAN() {
	if p.key.Get(of13.VLANVID) != 0 {
		p.remove(12, 4)
	}
}

// pushMPLS puts a shim directly behind the addresses. It has label, class and
// time to live of the shim that was there; else label and class 0, bottom of the
// stack, and the time to live of IP, else 0.
func (p *packet) pushMPLS(kind uint16) {
	shim := uint32(1 << 8)
	if p.isMPLS() {
		shim = p.u32(p.l3) &^ (1 << 8)
	} else if at := p.ttlAt(p.l3, uint16(p.key.Get(of13.EthType))); at > 0 {
		shim |= uint32(p.b[at])
	}
	if p.insert(12, 4) {
		p.put16(12, kind)
		binary.BigEndian.PutUint32(p.b[14:], shim) // over the type that was there, which the shim hides
	}
}

func (p *packet) isMPLS() bool {
	return p.typeAt > 0 && isMPLS(p.u16(p.typeAt)) && p.has(p.l3, 4)
}

func (p *packet) popMPLS(kind uint16) {
	if p.isMPLS() {
		p.put16(p.typeAt, kind)
		p.remove(p.l3, 4)
	}
}

// pushPBB puts a service instance before the addresses, which become those of
// the customer; the backbone's are the same. The instance is that of an outer
// one, else 0; its priority that of an outer VLAN tag.
func (p *packet) pushPBB(kind uint16) {
	tag := uint32(p.key.Get(of13.VLANPCP)) << 29
	if p.u16(p.typeAt) == 0x88e7 && p.has(p.l3, 4) {
		tag |= p.u32(p.l3) & 0xffffff
	}
	if p.insert(0, 18) {
		copy(p.b, p.b[18:30])
		p.put16(12, kind)
		binary.BigEndian.PutUint32(p.b[14:], tag)
	}
}

func (p *packet) popPBB() {
	if at := p.l3 + 4; p.typeAt > 0 && p.u16(p.typeAt) == 0x88e7 && p.has(at, 14) {
		p.remove(0, at)
	}
}

// ttlAt is where the time to live of a header of a type is; 0: it has none.
func (p *packet) ttlAt(at int, kind uint16) int {
	switch {
	case kind == 0x0800 && p.has(at, 20):
		return at + 8
	case kind == 0x86dd && p.has(at, 40):
		return at + 7
	case isMPLS(kind) && p.has(at, 4):
		return at + 3
	}
	return 0
}

// innerTTL is where the time to live of the header behind the outermost shim
// is, and its type; IP is known by its version.
func (p *packet) innerTTL() (at int, kind uint16) {
	at = p.l3 + 4
	switch {
	case p.b[p.l3+2]&1 == 0:
		kind = 0x8847
	case p.has(at, 1) && p.b[at]>>4 == 4:
		kind = 0x0800
	case p.has(at, 1) && p.b[at]>>4 == 6:
		kind = 0x86dd
	}
	return p.ttlAt(at, kind), kind
}

func (p *packet) copyTTL(inwards bool) {
	if !p.isMPLS() {
		return
	}
	inner, kind := p.innerTTL()
	switch outer := p.l3 + 3; {
	case inner == 0:
	case inwards && kind == 0x0800:
		p.write(inner, p.b[outer:outer+1], p.l3+4+sumIPv4)
	case inwards:
		p.write(inner, p.b[outer:outer+1])
	default:
		p.write(outer, p.b[inner:inner+1])
	}
}

// setTTL sets the time to live of the outermost header that is MPLS, or IP.
func (p *packet) setTTL(mpls bool, v byte) {
	kind := uint16(p.key.Get(of13.EthType))
	at := p.ttlAt(p.l3, kind)
	switch {
	case at == 0 || isMPLS(kind) != mpls:
	case kind == 0x0800:
		p.write(at, []byte{v}, p.l3+sumIPv4)
	default:
		p.write(at, []byte{v})
	}
}

// decTTL says whether the packet may go on: its time to live was above 1, or it has none.
func (p *packet) decTTL(mpls bool) bool {
	kind := uint16(p.key.Get(of13.EthType))
	at := p.ttlAt(p.l3, kind)
	if at == 0 || isMPLS(kind) != mpls {
		return true
	}
	if p.b[at] <= 1 {
		return false
	}
	p.setTTL(mpls, p.b[at]-1)
	return true
}
