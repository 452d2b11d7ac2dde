package overlay

import (
	"encoding/binary"
	"math/rand/v2"

	"sublet/vnet"
)

func vni(i int) vnet.VNI { return vnet.VNI(i) }

// randomFrame is a frame as tenants might send: mostly IP, of all kinds.
func randomFrame(r *rand.Rand) []byte {
	frame := bytesOf(r, 14)
	frame[0] &^= 1
	switch r.IntN(10) {
	case 0: // anything
		return append(frame, bytesOf(r, r.IntN(120))...)
	case 1: // address resolution, tags, other types
		kinds := []uint16{0x0806, 0x8100, 0x88a8, 0x88cc, 0x05dc, 0x894f, 0x8847}
		binary.BigEndian.PutUint16(frame[12:], kinds[r.IntN(len(kinds))])
		return append(frame, bytesOf(r, r.IntN(200))...)
	case 2, 3, 4:
		binary.BigEndian.PutUint16(frame[12:], 0x86dd)
		return append(frame, random6(r)...)
	default:
		binary.BigEndian.PutUint16(frame[12:], 0x0800)
		return append(frame, random4(r)...)
	}
}

func bytesOf(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

var nexts = []byte{1, 4, 6, 6, 17, 17, 17, 41, 43, 44, 47, 50, 58, 132}

// payloadSize is small, or around what fits, or anything.
func payloadSize(r *rand.Rand) int {
	switch r.IntN(4) {
	case 0:
		return 1330 + r.IntN(80)
	case 1:
		return r.IntN(1600)
	}
	return r.IntN(64)
}

func random4(r *rand.Rand) []byte {
	p := append([]byte{0x45}, bytesOf(r, 19)...)
	if r.IntN(8) == 0 {
		p[0] = 0x40 | byte(5+r.IntN(11)) // options
		p = append(p, bytesOf(r, 4*int(p[0]&15)-20)...)
	}
	p[9] = nexts[r.IntN(len(nexts))]
	if r.IntN(4) > 0 {
		p[6], p[7] = 0x40, 0 // whole
	}
	p = append(p, bytesOf(r, payloadSize(r))...)
	if r.IntN(8) > 0 {
		binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	}
	return p
}

func random6(r *rand.Rand) []byte {
	p := append(bytesOf(r, 40), bytesOf(r, payloadSize(r))...)
	p[0] = 0x60 | p[0]&15
	p[6] = nexts[r.IntN(len(nexts))]
	if r.IntN(8) > 0 {
		binary.BigEndian.PutUint16(p[4:], uint16(len(p)-40))
	}
	return p
}

// damage changes nothing, or a little, or a lot of a tunnel packet.
func damage(r *rand.Rand, frame []byte) []byte {
	frame = append([]byte(nil), frame...)
	switch r.IntN(8) {
	case 0, 1:
		return frame
	case 2: // shorter
		return frame[:14+r.IntN(len(frame)-13)]
	case 3: // padding
		return append(frame, bytesOf(r, r.IntN(64))...)
	case 4: // congestion marks, with a right sum
		if frame[12] == 8 && len(frame) >= 34 {
			frame[15] = frame[15]&^3 | byte(r.IntN(4))
			resum(frame)
		} else if len(frame) > 15 {
			frame[15] = frame[15]&^0x30 | byte(r.IntN(4))<<4
		}
		return frame
	case 5: // one field of the outer headers, with a right sum
		at := 14 + r.IntN(min(len(frame), 100)-13)
		if at < len(frame) {
			frame[at] = byte(r.Uint32())
		}
		if frame[12] == 8 && len(frame) >= 34 && r.IntN(4) > 0 {
			resum(frame)
		}
		return frame
	case 6: // another protocol, port or number
		if frame[12] == 8 && len(frame) >= 50 {
			if r.IntN(2) == 0 {
				frame[23] = nexts[r.IntN(len(nexts))]
			}
			ports := []uint16{4789, 4790, 6080, 6081, 4341, 53}
			binary.BigEndian.PutUint16(frame[36:], ports[r.IntN(len(ports))])
			resum(frame)
		}
		return frame
	}
	for range 1 + r.IntN(6) { // bits anywhere
		frame[r.IntN(len(frame))] ^= 1 << r.IntN(8)
	}
	return frame
}

func resum(frame []byte) {
	frame[24], frame[25] = 0, 0
	binary.BigEndian.PutUint16(frame[24:], ^slowSum(frame[14:34]))
}
