package pipeline

import (
	"encoding/binary"
	"hash/crc32"

	"sublet/openflow/of13"
)

// Offsets of checksums in their headers.
const (
	sumIPv4 = 10
	sumTCP  = 16
	sumUDP  = 6
	sumICMP = 2
	sumSCTP = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// proto is the protocol above IP.
func (p *packet) proto() byte { return byte(p.key.Get(of13.IPProto)) }

// sumAt is where the checksum of TCP, UDP or ICMP is; 0: none. pseudo asks for
// those that include the addresses of IP.
func (p *packet) sumAt(pseudo bool) int {
	if p.l4 == 0 {
		return 0
	}
	switch proto := p.proto(); {
	case proto == 6:
		return p.l4 + sumTCP
	case proto == 17:
		return p.l4 + sumUDP
	case proto == 58, proto == 1 && !pseudo:
		return p.l4 + sumICMP
	}
	return 0
}

// adjust follows a change of 16 bits (RFC 1624). A UDP checksum of zero says
// that there is none.
func (p *packet) adjust(at int, before, after uint16) {
	udp := at == p.l4+sumUDP && p.proto() == 17
	if at == 0 || !p.has(at, 2) || udp && p.u16(at) == 0 {
		return
	}
	sum := uint32(^p.u16(at)) + uint32(^before) + uint32(after)
	sum = sum&0xffff + sum>>16
	sum = ^(sum&0xffff + sum>>16) & 0xffff
	if udp && sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(p.b[at:], uint16(sum))
}

// write changes bytes, and the checksums at these offsets with them. All headers
// begin at even offsets.
func (p *packet) write(at int, b []byte, sums ...int) {
	from, to := at&^1, (at+len(b)+1)&^1
	var before [18]byte
	copy(before[:], p.b[from:min(to, len(p.b))])
	copy(p.b[at:], b)
	p.stale = true
	for _, sum := range sums {
		for i := from; sum > 0 && i+1 < min(to, len(p.b)); i += 2 {
			p.adjust(sum, binary.BigEndian.Uint16(before[i-from:]), p.u16(i))
		}
	}
}

// sctp changes bytes of an SCTP packet. Its CRC-32C is corrected by the
// difference, so that one that was wrong stays so.
func (p *packet) sctp(at int, b []byte) {
	end := p.end()
	before := p.crc(end)
	copy(p.b[at:], b)
	p.stale = true
	sum := p.b[p.l4+sumSCTP:]
	binary.LittleEndian.PutUint32(sum, binary.LittleEndian.Uint32(sum)^before^p.crc(end))
}

func (p *packet) crc(end int) uint32 {
	var kept [4]byte
	field := p.b[p.l4+sumSCTP : p.l4+sumSCTP+4]
	copy(kept[:], field)
	clear(field)
	crc := crc32.Checksum(p.b[p.l4:end], castagnoli)
	copy(field, kept[:])
	return crc
}

// end of the IP packet in the frame, which may be padded.
func (p *packet) end() int {
	n := p.l3 + 40 + int(p.u16(p.l3+4))
	if p.key.Get(of13.EthType) == 0x0800 {
		n = p.l3 + int(p.u16(p.l3+2))
	}
	if n < p.l4+12 || n > len(p.b) {
		return len(p.b)
	}
	return n
}
