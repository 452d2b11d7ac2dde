package vnet

import (
	"encoding/binary"
	"encoding/hex"
)

// Metadata is what packets of a chain carry in its headers, for functions that know NSH
// (RFC 8300): Words are those of MD type 1, TLVs are of MD type 2. One of them, or neither.
type Metadata struct {
	Words []uint32 `json:"words,omitempty"`
	TLVs  []TLV    `json:"tlvs,omitempty"`
}

// TLV is one context header of variable length.
type TLV struct {
	Class uint16 `json:"class"`
	Type  uint8  `json:"type"`
	Value string `json:"value,omitempty"` // digits of base 16
}

// Bounds of metadata. Each byte is taken from the longest packet of the network.
const (
	metadataWords = 4
	MaxMetadata   = 64
)

// IsZero says whether there is none.
func (m Metadata) IsZero() bool { return len(m.Words) == 0 && len(m.TLVs) == 0 }

// Encode is the MD type and what stands behind the header; 0: there is none. It was
// checked.
func (m Metadata) Encode() (mdType uint8, b []byte) {
	for _, w := range m.Words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	if len(b) > 0 {
		return 1, b
	}
	for _, t := range m.TLVs {
		value, _ := hex.DecodeString(t.Value)
		b = append(binary.BigEndian.AppendUint16(b, t.Class), t.Type, uint8(len(value)))
		b = append(b, value...)
		b = append(b, make([]byte, (4-len(value)%4)%4)...)
	}
	if len(b) == 0 {
		return 0, nil
	}
	return 2, b
}

// Size is how many bytes it takes.
func (m Metadata) Size() int {
	_, b := m.Encode()
	return len(b)
}

// LargestMetadata is the size of the largest that chains have.
func LargestMetadata(chains []Chain) (size int) {
	for _, c := range chains {
		size = max(size, c.Metadata.Size())
	}
	return size
}

func (m Metadata) check(path string) error {
	if len(m.Words) > 0 && len(m.TLVs) > 0 {
		return fieldf(path+".tlvs", "words are stated too: keep one of them")
	}
	if n := len(m.Words); n != 0 && n != metadataWords {
		return fieldf(path+".words", "%d words are not %d, which MD type 1 has: state %d, or tlvs", n, metadataWords, metadataWords)
	}
	for i, t := range m.TLVs {
		if _, err := hex.DecodeString(t.Value); err != nil {
			return fieldf(at(path+".tlvs", i)+".value", "%q is not bytes: write two digits of base 16 for each, such as \"0a1b\"", t.Value)
		}
	}
	if size := m.Size(); size > MaxMetadata {
		return fieldf(path+".tlvs", "take %d bytes, with 4 for each and values in fours, of %d that may be: state less", size, MaxMetadata)
	}
	return nil
}
