// Package header reads and writes the Network Service Header (RFC 8300).
package header

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Header is one NSH. Unassigned bits are kept.
type Header struct {
	OAM        bool
	TTL        uint8 // 6 bits
	MD         uint8 // type of the metadata, 4 bits
	Next       uint8 // protocol of what follows
	Path       uint32
	Index      uint8
	Metadata   []byte
	Unassigned uint32 // those of the first word, in their places
}

// Protocols that may follow (RFC 8300, section 9.1.6).
const (
	IPv4     = 1
	IPv6     = 2
	Ethernet = 3
	NSH      = 4
	MPLS     = 5
)

// Sizes in bytes: of the header without metadata, of the metadata of type 1, and of
// the most that any has.
const (
	Size      = 8
	Type1     = 16
	mostWords = 63
	Most      = mostWords*4 - Size
)

const (
	versionBits    = 3 << 30
	oamBit         = 1 << 29
	unassignedBits = 1<<28 | 0xf<<12
)

// Append writes the header behind b. Metadata of type 1 has 16 bytes, of type 2 a
// multiple of 4.
func (h Header) Append(b []byte) ([]byte, error) {
	switch {
	case h.TTL > 63 || h.MD > 15 || h.Path >= 1<<24 || h.Unassigned&^uint32(unassignedBits) != 0:
		return nil, errors.New("a field has more than its bits")
	case len(h.Metadata)%4 != 0 || len(h.Metadata) > Most:
		return nil, fmt.Errorf("metadata of %d bytes: a multiple of 4 up to %d is possible", len(h.Metadata), Most)
	case h.MD == 1 && len(h.Metadata) != Type1:
		return nil, fmt.Errorf("metadata of type 1 has %d bytes, not %d", len(h.Metadata), Type1)
	}
	word := h.Unassigned | uint32(h.TTL)<<22 | uint32((Size+len(h.Metadata))/4)<<16 | uint32(h.MD)<<8 | uint32(h.Next)
	if h.OAM {
		word |= oamBit
	}
	b = binary.BigEndian.AppendUint32(b, word)
	b = binary.BigEndian.AppendUint32(b, h.Path<<8|uint32(h.Index))
	return append(b, h.Metadata...), nil
}

// Parse reads the header that b begins with, and says what follows. It refuses what
// a forwarder must (RFC 8300, section 2.2). Metadata is part of b.
func Parse(b []byte) (h Header, rest []byte, err error) {
	if len(b) < Size {
		return h, nil, fmt.Errorf("%d bytes are no header", len(b))
	}
	word, path := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	length := int(word>>16&mostWords) * 4
	h = Header{
		OAM: word&oamBit != 0, TTL: uint8(word >> 22 & 63), MD: uint8(word >> 8 & 15), Next: uint8(word),
		Path: path >> 8, Index: uint8(path), Unassigned: word & unassignedBits,
	}
	switch {
	case word&versionBits != 0:
		return h, nil, fmt.Errorf("version %d is unknown", word>>30)
	case length < Size || length > len(b):
		return h, nil, fmt.Errorf("a length of %d bytes in %d", length, len(b))
	case h.MD != 1 && h.MD != 2:
		return h, nil, fmt.Errorf("metadata of type %d is unknown", h.MD)
	case h.MD == 1 && length != Size+Type1:
		return h, nil, fmt.Errorf("metadata of type 1 has %d bytes, not %d", length-Size, Type1)
	}
	if length > Size {
		h.Metadata = b[Size:length]
	}
	return h, b[length:], nil
}
