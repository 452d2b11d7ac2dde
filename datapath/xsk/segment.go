package xsk

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// cutter cuts a segment that offload left whole into the frames it stands for,
// as a device with segmentation offload does, for ports that carry frames only.
type cutter struct {
	f    []byte // the segment
	w    where
	head int // bytes of headers, which every part has
	part int // bytes of payload of a part
	left int // bytes of payload
	done int
}

// cut prepares the cutting of a segment behind its virtio header h; false: it makes
// no sense.
func cut(h, b []byte) (c cutter, ok bool) {
	c.f, c.part = b, int(binary.NativeEndian.Uint16(h[4:]))
	if c.w, ok = locate(b); !ok || c.part == 0 {
		return c, false
	}
	switch kind := h[1] &^ gsoECN; {
	case c.w.proto == unix.IPPROTO_TCP && (kind == gsoTCPv4 || kind == gsoTCPv6):
		c.head = c.w.l4 + int(b[c.w.l4+12]>>4)*4
	case c.w.proto == unix.IPPROTO_UDP && kind == gsoUDP:
		c.head = c.w.l4 + 8
	default:
		return c, false
	}
	c.left = len(b) - c.head
	return c, c.head >= c.w.l4+8 && c.head <= len(b) && c.left > 0
}

// frames is how many there will be, and size how long the longest.
func (c *cutter) frames() int { return (c.left + c.part - 1) / c.part }
func (c *cutter) size() int   { return c.head + min(c.part, c.left) }

// next is the length of the next frame, 0 behind the last.
func (c *cutter) next() int {
	if c.left == 0 {
		return 0
	}
	return c.size()
}

// write writes the next frame into b, which is as long as next says.
func (c *cutter) write(b []byte) {
	copy(b, c.f[:c.head])
	copy(b[c.head:], c.f[c.head+c.done:])
	n := len(b) - c.head
	last := n == c.left
	c.network(b)
	if c.w.proto == unix.IPPROTO_TCP {
		c.tcp(b[c.w.l4:], last)
	} else {
		binary.BigEndian.PutUint16(b[c.w.l4+4:], uint16(8+n))
	}
	at := b[c.w.l4+c.w.field():]
	binary.NativeEndian.PutUint16(at, fold(c.w.pseudo(b, len(b)-c.w.l4)))
	finish(b, c.w.l4, c.w.field())
	c.done, c.left = c.done+n, c.left-n
}

// network sets lengths, and of IPv4 the number and the checksum.
func (c *cutter) network(b []byte) {
	ip := b[c.w.l3:c.w.l4]
	if c.w.v6 {
		binary.BigEndian.PutUint16(ip[4:], uint16(len(b)-c.w.l4))
		return
	}
	binary.BigEndian.PutUint16(ip[2:], uint16(len(b)-c.w.l3))
	binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+uint16(c.done/c.part))
	binary.NativeEndian.PutUint16(ip[10:], 0)
	binary.NativeEndian.PutUint16(ip[10:], ^fold(add(0, ip)))
}

// Flags of TCP (RFC 9293, 3.1).
const (
	tcpFIN = 1 << 0
	tcpPSH = 1 << 3
	tcpCWR = 1 << 7
)

// tcp sets the sequence number and the flags: the last frame ends and pushes,
// the first one says that the window was reduced (RFC 3168, 6.1.2).
func (c *cutter) tcp(h []byte, last bool) {
	binary.BigEndian.PutUint32(h[4:], binary.BigEndian.Uint32(h[4:])+uint32(c.done))
	if !last {
		h[13] &^= tcpFIN | tcpPSH
	}
	if c.done > 0 {
		h[13] &^= tcpCWR
	}
}
