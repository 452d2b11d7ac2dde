package of10

import (
	"encoding/binary"

	"sublet/openflow/of13"
)

// coder reads a message from b, or appends one to it.
type coder struct {
	b     []byte
	off   int // read: where
	write bool
	start int // write: where the message begins
	err   error
}

var zeros [64]byte

func (c *coder) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// bytes gives the next n bytes, or room for them. After a failure they are zeros
// that belong to nobody.
func (c *coder) bytes(n int) []byte {
	if c.write {
		at := len(c.b)
		for rest := n; rest > 0; rest -= len(zeros) {
			c.b = append(c.b, zeros[:min(rest, len(zeros))]...)
		}
		return c.b[at:]
	}
	if c.err != nil || n > c.rest() {
		c.fail(of13.BadRequestBadLen)
		return make([]byte, n)
	}
	c.off += n
	return c.b[c.off-n : c.off]
}

func (c *coder) rest() int { return len(c.b) - c.off }

func (c *coder) pad(n int) { c.bytes(n) }

func (c *coder) u8(v *uint8) {
	if b := c.bytes(1); c.write {
		b[0] = *v
	} else {
		*v = b[0]
	}
}

func (c *coder) u16(v *uint16) {
	if b := c.bytes(2); c.write {
		binary.BigEndian.PutUint16(b, *v)
	} else {
		*v = binary.BigEndian.Uint16(b)
	}
}

func (c *coder) u32(v *uint32) {
	if b := c.bytes(4); c.write {
		binary.BigEndian.PutUint32(b, *v)
	} else {
		*v = binary.BigEndian.Uint32(b)
	}
}

func (c *coder) u64s(list ...*uint64) {
	for _, v := range list {
		if b := c.bytes(8); c.write {
			binary.BigEndian.PutUint64(b, *v)
		} else {
			*v = binary.BigEndian.Uint64(b)
		}
	}
}

// text is a string in a field of n bytes, ended by a zero byte.
func (c *coder) text(v *string, n int) {
	b := c.bytes(n)
	if c.write {
		copy(b[:n-1], *v)
		return
	}
	end := 0
	for end < n-1 && b[end] != 0 {
		end++
	}
	if string(b[:end]) != *v { // a Decoder that reads the same name again makes no new string
		*v = string(b[:end])
	}
}

// tail is all that is left.
func (c *coder) tail(v *[]byte) {
	if c.write {
		c.b = append(c.b, *v...)
		return
	}
	*v = c.bytes(c.rest())
}

// port is the number of a port in 16 bits. The reserved ones are the last of
// either range.
func (c *coder) port(v *uint32) {
	n := narrow(*v)
	if c.u16(&n); !c.write {
		*v = wide(n)
	}
}

// reserved is the first number of a port that stands for something else.
const reserved = 0xfff8

func wide(n uint16) uint32 {
	if n >= reserved {
		return 0xffff0000 | uint32(n)
	}
	return uint32(n)
}

// narrow gives what stands for no port if there are no 16 bits that say it.
func narrow(n uint32) uint16 {
	if n >= reserved && n < of13.PortInPort {
		return uint16(of13.PortAny & 0xffff)
	}
	return uint16(n)
}

// more makes a slice longer by one, whose former contents it keeps.
func more[T any](s *[]T) *T {
	if len(*s) < cap(*s) {
		*s = (*s)[:len(*s)+1]
	} else {
		var zero T
		*s = append(*s, zero)
	}
	return &(*s)[len(*s)-1]
}

// list is elements up to the end of the message. A reply that becomes too long is
// continued in another one.
func list[T any](c *coder, s *[]T, one func(*coder, *T)) {
	if !c.write {
		for *s = (*s)[:0]; c.err == nil && c.rest() > 0; {
			one(c, more(s))
		}
		return
	}
	for i := range *s {
		item := len(c.b)
		one(c, &(*s)[i])
		if len(c.b)-c.start > of13.MaxLen && c.b[c.start+1] == typeStatsReply {
			c.nextPart(item)
		}
	}
}
