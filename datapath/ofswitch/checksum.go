package ofswitch

import "encoding/binary"

// checksum finishes a checksum that the sender left to do. That of a segment
// which is still to be cut holds the sum of the pseudo header: it is inverted
// here, and again by ready, so that changes of addresses correct it as they
// correct a finished one.
func (r *received) checksum() {
	start := int(binary.NativeEndian.Uint16(r.header[6:]))
	at := start + int(binary.NativeEndian.Uint16(r.header[8:]))
	r.large = r.header[1] != 0
	if r.header[0]&1 == 0 || at+2 > len(r.frame) || start+4 > len(r.frame) {
		r.large = false
		return
	}
	field := r.frame[at : at+2]
	if r.large {
		r.ports = binary.BigEndian.Uint32(r.frame[start:])
		invert(field)
		return
	}
	sum := ^fold(sum(r.frame[start:]))
	if sum == 0 {
		sum = 0xffff // zero stands for none, in UDP
	}
	binary.BigEndian.PutUint16(field, sum)
}

// ready is the header for a segment after it has changed: moved by what was
// pushed or popped, its sum again that of the pseudo header, ports left out.
func (r *received) ready(frame []byte) [virtio]byte {
	header := r.header
	moved := len(frame) - len(r.frame)
	start := int(binary.NativeEndian.Uint16(header[6:])) + moved
	at := start + int(binary.NativeEndian.Uint16(header[8:]))
	if start < 0 || at+2 > len(frame) || start+4 > len(frame) {
		return header
	}
	binary.NativeEndian.PutUint16(header[2:], uint16(int(binary.NativeEndian.Uint16(header[2:]))+moved))
	binary.NativeEndian.PutUint16(header[6:], uint16(start))
	invert(frame[at:])
	ports := binary.BigEndian.Uint32(frame[start:])
	left := uint64(binary.BigEndian.Uint16(frame[at:])) + words(r.ports) + words(^ports)
	binary.BigEndian.PutUint16(frame[at:], fold(left))
	return header
}

func invert(b []byte) { b[0], b[1] = ^b[0], ^b[1] }

func words(v uint32) uint64 { return uint64(v>>16) + uint64(v&0xffff) }

// sum of the 16-bit words of b.
func sum(b []byte) (s uint64) {
	for ; len(b) >= 4; b = b[4:] {
		s += uint64(binary.BigEndian.Uint32(b))
	}
	for ; len(b) >= 2; b = b[2:] {
		s += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	return s
}

func fold(s uint64) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
