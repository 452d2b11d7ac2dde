package of13

import (
	"encoding/binary"
	"slices"
)

// coder reads a message from b, or appends one to it.
type coder struct {
	b     []byte // read: the message up to the limit of what is read now; write: all so far
	off   int    // read: where
	write bool
	start int   // write: where the message begins
	short Error // what it is called when bytes are missing
	err   error
	split func(c *coder, item int) // write: begins another part, into which what was written since item goes
}

func (c *coder) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

var zeros [64]byte

// bytes gives n bytes at the present place: those received, or room for those to send.
// After a failure they are zeros that belong to nobody.
func (c *coder) bytes(n int) []byte {
	if c.write {
		at := len(c.b)
		c.b = slices.Grow(c.b, n)[:at+n]
		clear(c.b[at:])
		return c.b[at:]
	}
	if c.err != nil || n > len(c.b)-c.off {
		c.fail(c.short)
		return make([]byte, n)
	}
	c.off += n
	return c.b[c.off-n : c.off]
}

// rest is the number of bytes that are left to read.
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

func (c *coder) u64(v *uint64) {
	if b := c.bytes(8); c.write {
		binary.BigEndian.PutUint64(b, *v)
	} else {
		*v = binary.BigEndian.Uint64(b)
	}
}

func (c *coder) u32s(list ...*uint32) {
	for _, v := range list {
		c.u32(v)
	}
}

func (c *coder) u64s(list ...*uint64) {
	for _, v := range list {
		c.u64(v)
	}
}

// u128 is a number of n bytes, up to 16.
func (c *coder) u128(v *U128, n int) {
	b := c.bytes(n)
	if c.write {
		v.Put(b)
	} else {
		*v = ReadU128(b)
	}
}

func (c *coder) mac(v *[6]byte) {
	if b := c.bytes(6); c.write {
		copy(b, v[:])
	} else {
		copy(v[:], b)
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

// sized is something that begins with, or has at byte at, its length in 16 bits.
// Its fixed part has least bytes. The length counts what body writes; padding to
// 8 bytes follows if padded. Reading, body sees no more than that length.
func (c *coder) sized(at, least int, padded bool, body func()) {
	if c.write {
		from := len(c.b)
		body()
		binary.BigEndian.PutUint16(c.b[from+at:], uint16(len(c.b)-from))
		if padded {
			c.pad(-(len(c.b) - from) & 7)
		}
		return
	}
	if c.err != nil || c.rest() < at+2 {
		c.fail(c.short)
		return
	}
	n := int(binary.BigEndian.Uint16(c.b[c.off+at:]))
	if n < least || n > c.rest() {
		c.fail(c.short)
		return
	}
	whole, end := c.b, c.off+n
	c.b = c.b[:end]
	body()
	if c.err == nil && c.off != end {
		c.fail(c.short)
	}
	c.b = whole
	if padded && c.err == nil {
		c.pad(min(-n&7, c.rest()))
	}
}

// list is elements up to the end of what is read now. Elements that were there
// before are used again, with the slices in them.
func list[T any](c *coder, s *[]T, one func(*coder, *T)) {
	if c.write {
		for i := range *s {
			item, split := len(c.b), c.split
			c.split = nil // lists in an element stay whole
			one(c, &(*s)[i])
			if c.split = split; split != nil && len(c.b)-c.start > MaxLen {
				split(c, item)
			}
		}
		return
	}
	*s = (*s)[:0]
	for c.err == nil && c.rest() > 0 {
		from := c.off
		one(c, more(s))
		if c.off == from { // an element of no bytes would never end
			c.fail(c.short)
		}
	}
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

// in reads or writes with another name for missing bytes.
func (c *coder) in(short Error, body func()) {
	was := c.short
	c.short = short
	body()
	c.short = was
}
