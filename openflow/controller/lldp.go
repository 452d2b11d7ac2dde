package controller

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// LLDP (IEEE 802.1AB): each port of each switch sends a frame that names it, so
// that whoever receives it knows the link. An own element of it has the numbers
// and proves with a key that the controller made the frame, and when: stations
// cannot make up links.
const (
	lldpType   = 0x88cc
	lldpTarget = 0x0180c200000e
	ethernet   = 14
	proofBytes = 16
	numbers    = 8 + 4 + 8 // datapath, port, round
	roundsLate = 8         // frames of older rounds are no longer believed
)

// organisation marks our element: an identifier of the local range and a subtype.
var organisation = [4]byte{0x02, 0x53, 0x4c, 1}

// place is a port of a switch.
type place struct {
	dpid uint64
	port uint32
}

type lldpKey [32]byte

// frame is what a port sends in a round.
func (k *lldpKey) frame(at place, hw [6]byte, round uint64) []byte {
	b := make([]byte, 0, 128)
	b = append(b, 0x01, 0x80, 0xc2, 0, 0, 0x0e)
	b = append(b, hw[:]...)
	b = binary.BigEndian.AppendUint16(b, lldpType)
	b = element(b, 1, fmt.Appendf([]byte{7}, "dpid:%016x", at.dpid)) // chassis, locally assigned
	b = element(b, 2, fmt.Appendf([]byte{7}, "%d", at.port))
	b = element(b, 3, []byte{0, 120})
	own := append([]byte(nil), organisation[:]...)
	own = binary.BigEndian.AppendUint64(own, at.dpid)
	own = binary.BigEndian.AppendUint32(own, at.port)
	own = binary.BigEndian.AppendUint64(own, round)
	b = element(b, 127, append(own, k.proof(own)...))
	return append(b, 0, 0)
}

func element(b []byte, kind int, value []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(kind<<9|len(value)))
	return append(b, value...)
}

func (k *lldpKey) proof(of []byte) []byte {
	h := hmac.New(sha256.New, k[:])
	h.Write(of)
	return h.Sum(nil)[:proofBytes]
}

// read says which port sent a frame, if the controller made it lately.
func (k *lldpKey) read(frame []byte, round uint64) (from place, ok bool) {
	for b := frame[min(ethernet, len(frame)):]; len(b) >= 2; {
		head := int(b[0])<<8 | int(b[1])
		kind, size := head>>9, head&0x1ff
		if kind == 0 || size > len(b)-2 {
			return from, false
		}
		value := b[2 : 2+size]
		b = b[2+size:]
		if kind == 127 && size == len(organisation)+numbers+proofBytes && [4]byte(value) == organisation {
			return k.believe(value, round)
		}
	}
	return from, false
}

func (k *lldpKey) believe(value []byte, round uint64) (from place, ok bool) {
	signed, proof := value[:len(value)-proofBytes], value[len(value)-proofBytes:]
	if !hmac.Equal(proof, k.proof(signed)) {
		return from, false
	}
	n := signed[len(organisation):]
	sent := binary.BigEndian.Uint64(n[12:])
	return place{binary.BigEndian.Uint64(n), binary.BigEndian.Uint32(n[8:])}, sent <= round && round-sent < roundsLate
}
