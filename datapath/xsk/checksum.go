package xsk

import (
	"encoding/binary"
	"math/bits"

	"golang.org/x/sys/unix"
)

// add adds the 16-bit words of b to a ones' complement sum (RFC 1071), eight
// bytes at a time. Sums are of words as they lie in memory: the sum of swapped
// words is the swapped sum.
func add(sum uint64, b []byte) uint64 {
	var carry uint64
	for len(b) >= 8 {
		sum, carry = bits.Add64(sum, binary.NativeEndian.Uint64(b), carry)
		b = b[8:]
	}
	var rest [8]byte
	copy(rest[:], b)
	sum, carry = bits.Add64(sum, binary.NativeEndian.Uint64(rest[:]), carry)
	sum, carry = bits.Add64(sum, 0, carry)
	return sum + carry
}

// fold makes a sum 16 bits.
func fold(sum uint64) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// where says where a frame's headers are: behind Ethernet's and tags, and
// behind IP's; and what the latter is. ok is false for what is not TCP or UDP
// whole in IP.
type where struct {
	l3, l4 int
	end    int // of the IP packet
	proto  byte
	v6     bool
}

func locate(b []byte) (w where, ok bool) {
	w.l3 = 14
	for range 2 {
		if len(b) < w.l3+1 {
			return w, false
		}
		kind := binary.BigEndian.Uint16(b[w.l3-2:])
		if kind != unix.ETH_P_8021Q && kind != unix.ETH_P_8021AD {
			break
		}
		w.l3 += 4
	}
	if len(b) < w.l3+20 {
		return w, false
	}
	switch p := b[w.l3:]; binary.BigEndian.Uint16(b[w.l3-2:]) {
	case unix.ETH_P_IP:
		if p[0]>>4 != 4 || p[0]&15 < 5 || binary.BigEndian.Uint16(p[6:])&0x3fff != 0 {
			return w, false
		}
		w.l4, w.end, w.proto = w.l3+int(p[0]&15)*4, w.l3+int(binary.BigEndian.Uint16(p[2:])), p[9]
	case unix.ETH_P_IPV6:
		if len(p) < 40 || p[0]>>4 != 6 {
			return w, false
		}
		w.l4, w.end, w.proto, w.v6 = w.l3+40, w.l3+40+int(binary.BigEndian.Uint16(p[4:])), p[6], true
	default:
		return w, false
	}
	return w, w.proto == unix.IPPROTO_TCP && w.l4+20 <= len(b) || w.proto == unix.IPPROTO_UDP && w.l4+8 <= len(b)
}

// field is where, behind l4, the checksum is.
func (w where) field() int {
	if w.proto == unix.IPPROTO_TCP {
		return 16
	}
	return 6
}

// pseudo sums the pseudo header of n bytes of TCP or UDP (RFC 9293, 3.1; RFC
// 8200, 8.1).
func (w where) pseudo(b []byte, n int) uint64 {
	addresses := b[w.l3+12 : w.l3+20]
	if w.v6 {
		addresses = b[w.l3+8 : w.l3+40]
	}
	var rest [8]byte
	binary.BigEndian.PutUint32(rest[:], uint32(n))
	rest[7] = w.proto
	return add(add(0, addresses), rest[:])
}

// unfinished says where the checksum of a frame is that its sender left to the
// device, which a veth device leaves so, and an AF_XDP socket says nothing of:
// the sum of the pseudo header is in its place, not complemented. A finished
// one that happens to be that number is what finishing makes of it again.
func unfinished(b []byte) (start, offset int, is bool) {
	w, ok := locate(b)
	if !ok || w.end > len(b) || w.end < w.l4 {
		return 0, 0, false
	}
	have := binary.NativeEndian.Uint16(b[w.l4+w.field():])
	return w.l4, w.field(), have != 0 && have == fold(w.pseudo(b, w.end-w.l4))
}

// finish makes the checksum of what begins at start; false: it says a place
// that is not in the frame.
func finish(b []byte, start, offset int) bool {
	if start+offset+2 > len(b) {
		return false
	}
	sum := ^fold(add(0, b[start:]))
	if sum == 0 {
		sum = 0xffff // 0 is no checksum (RFC 768)
	}
	binary.NativeEndian.PutUint16(b[start+offset:], sum)
	return true
}
