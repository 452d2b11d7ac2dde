package pipeline

import "sublet/openflow/of13"

// Shape is what headers a frame has, as far as its key does not tell.
type Shape uint32

// Bits of a Shape. Its lowest two are the number of VLAN tags.
const (
	ShapeTags    Shape = 3
	Shape8021AD  Shape = 1 << 2 // the outermost tag has this type
	ShapeDEI     Shape = 1 << 3 // of the outermost tag: the bit between priority and identifier
	ShapeNetwork Shape = 1 << 4 // the header behind Ethernet is whole, if its type is a known one
	ShapePorts   Shape = 1 << 5 // so is the one behind IP
	ShapeOdd     Shape = 1 << 6 // three tags and more, extension headers, neighbour discovery
)

// Tags is the number of VLAN tags; 3 stands for more, too.
func (s Shape) Tags() int { return int(s & ShapeTags) }

// shape of a packet that was just parsed.
func (p *packet) shape() (s Shape) {
	if p.l3 == 0 {
		return ShapeOdd
	}
	tags := (p.typeAt - 12) / 4
	kind := uint16(p.key.Get(of13.EthType))
	s = Shape(min(tags, 3))
	if tags > 2 || isVLAN(kind) || kind == 0x86dd && p.oddIPv6() {
		s |= ShapeOdd
	}
	if tags > 0 && p.u16(12) == 0x88a8 {
		s |= Shape8021AD
	}
	if tags > 0 && p.u16(14)&0x1000 != 0 {
		s |= ShapeDEI
	}
	if (headerLen[kind] > 0 || kind == of13.EthTypeNSH) && p.whole(kind) {
		s |= ShapeNetwork
	}
	if p.l4 > 0 {
		s |= ShapePorts
	}
	return s
}

func (p *packet) oddIPv6() bool {
	discovery := p.l4 > 0 && p.proto() == 58 && (p.b[p.l4] == 135 || p.b[p.l4] == 136)
	return p.key.Get(of13.IPv6ExtHdr) != 0 || discovery
}

// headerLen is how long headers behind Ethernet are at least, by type.
var headerLen = map[uint16]int{0x0800: 20, 0x86dd: 40, 0x0806: 28, 0x8847: 4, 0x8848: 4, 0x88e7: 4}

// whole says whether the header of a type is all there.
func (p *packet) whole(kind uint16) bool {
	if kind == of13.EthTypeNSH {
		return p.nshLen(p.l3) > 0
	}
	return p.has(p.l3, headerLen[kind])
}
