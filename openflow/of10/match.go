package of10

import (
	"encoding/binary"
	"math/bits"

	"sublet/openflow/of13"
)

// Bits of a match's wildcards. The addresses have six bits each: how many of the
// low bits do not matter; 32 and more stand for all.
const (
	anyInPort  = 1 << 0
	anyVLAN    = 1 << 1
	anyEthSrc  = 1 << 2
	anyEthDst  = 1 << 3
	anyEthType = 1 << 4
	anyProto   = 1 << 5
	anySource  = 1 << 6
	anyTarget  = 1 << 7
	ipSrcAt    = 8
	ipDstAt    = 14
	anyPCP     = 1 << 20
	anyToS     = 1 << 21
	anything   = 1<<22 - 1

	matchLen = 40
	noVLAN   = 0xffff // stands for packets without a tag
)

// Types behind Ethernet and protocols behind IP of which more can be matched.
const (
	ipv4, arp       = 0x0800, 0x0806
	icmp, tcp       = 1, 6
	udp, sctp       = 17, 132
	transportSource = 0
	transportTarget = 1
)

// transport is the fields that stand in the place of ports, by protocol.
func transport(proto uint8, which int) (of13.FieldID, bool) {
	switch proto {
	case icmp:
		return of13.ICMPv4Type + of13.FieldID(which), true
	case tcp:
		return of13.TCPSrc + of13.FieldID(which), true
	case udp:
		return of13.UDPSrc + of13.FieldID(which), true
	case sctp:
		return of13.SCTPSrc + of13.FieldID(which), true
	}
	return 0, false
}

// match is a match. Whether it is exact, which makes its entry go before all
// others, is what it says; it may be nil.
func (c *coder) match(m *of13.Match, exact *bool) {
	b := c.bytes(matchLen)
	if c.write {
		writeMatch(b, m.Fields)
		return
	}
	m.Fields = readMatch(b, m.Fields[:0])
	if exact != nil {
		*exact = binary.BigEndian.Uint32(b)&anything == 0
	}
}

// readMatch gives the fields of a match; those whose header its packets need not
// have do not count.
func readMatch(b []byte, f []of13.Field) []of13.Field {
	w := binary.BigEndian.Uint32(b)
	if w&anyInPort == 0 {
		f = append(f, of13.Exact(of13.InPort, uint64(wide(binary.BigEndian.Uint16(b[4:])))))
	}
	if w&anyEthSrc == 0 {
		f = append(f, of13.ExactU128(of13.EthSrc, of13.ReadU128(b[6:12])))
	}
	if w&anyEthDst == 0 {
		f = append(f, of13.ExactU128(of13.EthDst, of13.ReadU128(b[12:18])))
	}
	f = readVLAN(w, b, f)
	if w&anyEthType != 0 {
		return f
	}
	kind := binary.BigEndian.Uint16(b[22:])
	f = append(f, of13.Exact(of13.EthType, uint64(kind)))
	switch kind {
	case ipv4:
		return readIP(w, b, f)
	case arp:
		if w&anyProto == 0 {
			f = append(f, of13.Exact(of13.ARPOp, uint64(b[25])))
		}
		f = readAddress(f, of13.ARPSPA, b[28:], w>>ipSrcAt)
		return readAddress(f, of13.ARPTPA, b[32:], w>>ipDstAt)
	}
	return f
}

func readVLAN(w uint32, b []byte, f []of13.Field) []of13.Field {
	vid := binary.BigEndian.Uint16(b[18:])
	switch {
	case w&anyVLAN == 0 && vid == noVLAN:
		return append(f, of13.Exact(of13.VLANVID, 0))
	case w&anyVLAN == 0:
		f = append(f, of13.Exact(of13.VLANVID, of13.VLANPresent|uint64(vid&0xfff)))
	case w&anyPCP == 0:
		tagged := of13.U128{Lo: of13.VLANPresent}
		f = append(f, of13.WithMask(of13.VLANVID, tagged, tagged))
	}
	if w&anyPCP == 0 {
		f = append(f, of13.Exact(of13.VLANPCP, uint64(b[20]&7)))
	}
	return f
}

func readIP(w uint32, b []byte, f []of13.Field) []of13.Field {
	if w&anyToS == 0 {
		f = append(f, of13.Exact(of13.IPDSCP, uint64(b[24]>>2)))
	}
	f = readAddress(f, of13.IPv4Src, b[28:], w>>ipSrcAt)
	f = readAddress(f, of13.IPv4Dst, b[32:], w>>ipDstAt)
	if w&anyProto != 0 {
		return f
	}
	f = append(f, of13.Exact(of13.IPProto, uint64(b[25])))
	for which, free := range [...]uint32{anySource, anyTarget} {
		id, known := transport(b[25], which)
		if v := uint64(binary.BigEndian.Uint16(b[36+2*which:])); known && w&free == 0 {
			f = append(f, of13.Exact(id, v&of13.Ones(of13.Fields[id].Bits).Lo))
		}
	}
	return f
}

// readAddress adds an address of which the low bits do not matter.
func readAddress(f []of13.Field, id of13.FieldID, b []byte, free uint32) []of13.Field {
	v := of13.U128{Lo: uint64(binary.BigEndian.Uint32(b))}
	switch free &= 63; {
	case free == 0:
		return append(f, of13.ExactU128(id, v))
	case free < 32:
		return append(f, of13.WithMask(id, v, of13.U128{Lo: 0xffffffff &^ (1<<free - 1)}))
	}
	return f
}

// writeMatch writes fields as far as there are places for them.
func writeMatch(b []byte, list []of13.Field) {
	w := uint32(anything)
	for i := range list {
		f := &list[i]
		if f.Masked {
			w &^= writeMasked(b, f)
		} else {
			w &^= writeExact(b, f)
		}
		switch f.ID { // the number of bits that matter took the place of those that do not
		case of13.IPv4Src, of13.ARPSPA:
			w = w&^(63<<ipSrcAt) | freeBits(f)<<ipSrcAt
		case of13.IPv4Dst, of13.ARPTPA:
			w = w&^(63<<ipDstAt) | freeBits(f)<<ipDstAt
		}
	}
	binary.BigEndian.PutUint32(b, w)
}

// freeBits is how many low bits of an address do not matter, at least.
func freeBits(f *of13.Field) uint32 {
	return 32 - uint32(bits.LeadingZeros32(^uint32(f.Mask.Lo)))
}

// writeMasked writes an address; other fields have no masks.
func writeMasked(b []byte, f *of13.Field) (matters uint32) {
	at := 28
	switch f.ID {
	case of13.IPv4Src, of13.ARPSPA:
	case of13.IPv4Dst, of13.ARPTPA:
		at = 32
	default:
		return 0
	}
	binary.BigEndian.PutUint32(b[at:], uint32(f.Value.Lo)&^(1<<freeBits(f)-1))
	return 0
}

// writeExact writes a field and says which bit of the wildcards that ends.
func writeExact(b []byte, f *of13.Field) (matters uint32) {
	v := f.Value.Lo
	switch f.ID {
	case of13.InPort:
		binary.BigEndian.PutUint16(b[4:], narrow(uint32(v)))
		return anyInPort
	case of13.EthSrc:
		f.Value.Put(b[6:12])
		return anyEthSrc
	case of13.EthDst:
		f.Value.Put(b[12:18])
		return anyEthDst
	case of13.VLANVID:
		vid := uint16(v) & 0xfff
		if v == 0 {
			vid = noVLAN
		}
		binary.BigEndian.PutUint16(b[18:], vid)
		return anyVLAN
	case of13.VLANPCP:
		b[20] = uint8(v)
		return anyPCP
	case of13.EthType:
		binary.BigEndian.PutUint16(b[22:], uint16(v))
		return anyEthType
	}
	return writeNetwork(b, f)
}

func writeNetwork(b []byte, f *of13.Field) (matters uint32) {
	v := f.Value.Lo
	switch f.ID {
	case of13.IPDSCP:
		b[24] = uint8(v) << 2
		return anyToS
	case of13.IPProto, of13.ARPOp:
		if v > 0xff {
			return 0
		}
		b[25] = uint8(v)
		return anyProto
	case of13.IPv4Src, of13.ARPSPA:
		binary.BigEndian.PutUint32(b[28:], uint32(v))
	case of13.IPv4Dst, of13.ARPTPA:
		binary.BigEndian.PutUint32(b[32:], uint32(v))
	case of13.TCPSrc, of13.UDPSrc, of13.SCTPSrc, of13.ICMPv4Type:
		binary.BigEndian.PutUint16(b[36:], uint16(v))
		return anySource
	case of13.TCPDst, of13.UDPDst, of13.SCTPDst, of13.ICMPv4Code:
		binary.BigEndian.PutUint16(b[38:], uint16(v))
		return anyTarget
	}
	return 0
}
