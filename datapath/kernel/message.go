package kernel

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Message is one netlink request under construction: a fixed header of its
// family, then attributes. Numbers are in host order unless the name says BE.
type Message struct {
	kind  uint16
	flags uint16
	data  []byte
}

// NewMessage begins a request of a type (RTM_NEWLINK, ...) with the fixed header.
func NewMessage(kind uint16, flags int, header []byte) *Message {
	return &Message{kind: kind, flags: uint16(flags) | unix.NLM_F_REQUEST, data: append(make([]byte, 0, 256), header...)}
}

// Attr appends an attribute, padded to four bytes.
func (m *Message) Attr(kind uint16, value []byte) *Message {
	m.data = binary.NativeEndian.AppendUint16(m.data, uint16(len(value)+4))
	m.data = binary.NativeEndian.AppendUint16(m.data, kind)
	m.data = append(m.data, value...)
	m.data = append(m.data, make([]byte, -len(value)&3)...)
	return m
}

// Uint8 appends a one-byte attribute.
func (m *Message) Uint8(kind uint16, v uint8) *Message { return m.Attr(kind, []byte{v}) }

// Uint16BE appends a 16-bit attribute in network order.
func (m *Message) Uint16BE(kind uint16, v uint16) *Message {
	return m.Attr(kind, binary.BigEndian.AppendUint16(nil, v))
}

// Uint32 appends a 32-bit attribute.
func (m *Message) Uint32(kind uint16, v uint32) *Message {
	return m.Attr(kind, binary.NativeEndian.AppendUint32(nil, v))
}

// Uint64 appends a 64-bit attribute.
func (m *Message) Uint64(kind uint16, v uint64) *Message {
	return m.Attr(kind, binary.NativeEndian.AppendUint64(nil, v))
}

// String appends a zero-terminated string.
func (m *Message) String(kind uint16, s string) *Message { return m.Attr(kind, append([]byte(s), 0)) }

// Raw appends bytes as they are: a fixed header inside an attribute.
func (m *Message) Raw(b []byte) *Message {
	m.data = append(m.data, b...)
	return m
}

// Nest appends an attribute that holds what fill appends.
func (m *Message) Nest(kind uint16, fill func()) *Message {
	start := len(m.data)
	m.Attr(kind, nil)
	fill()
	binary.NativeEndian.PutUint16(m.data[start:], uint16(len(m.data)-start))
	return m
}

// bytes gives the message its netlink header.
func (m *Message) bytes(seq uint32, flags uint16) []byte {
	out := make([]byte, 0, len(m.data)+unix.NLMSG_HDRLEN)
	out = binary.NativeEndian.AppendUint32(out, uint32(len(m.data)+unix.NLMSG_HDRLEN))
	out = binary.NativeEndian.AppendUint16(out, m.kind)
	out = binary.NativeEndian.AppendUint16(out, m.flags|flags)
	out = binary.NativeEndian.AppendUint32(out, seq)
	out = binary.NativeEndian.AppendUint32(out, 0)
	return append(out, m.data...)
}

// EachAttr calls f for every attribute in b, without the nesting flags; a
// malformed rest is ignored.
func EachAttr(b []byte, f func(kind uint16, value []byte)) {
	for len(b) >= 4 {
		size := int(binary.NativeEndian.Uint16(b))
		if size < 4 || size > len(b) {
			return
		}
		f(binary.NativeEndian.Uint16(b[2:])&attrTypeMask, b[4:size])
		b = b[min((size+3)&^3, len(b)):]
	}
}

// attr finds one attribute.
func attr(b []byte, kind uint16) []byte {
	var found []byte
	EachAttr(b, func(k uint16, v []byte) {
		if k == kind {
			found = v
		}
	})
	return found
}

// uint32Of reads a 32-bit attribute; a missing one is 0.
func uint32Of(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}

// stringOf reads a zero-terminated string.
func stringOf(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// attrTypeMask takes the flags "nested" and "network order" off a type.
const attrTypeMask = 0x3fff
