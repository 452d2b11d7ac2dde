package header

import (
	"bytes"
	"testing"
)

// The header of RFC 8300, section 2: every field in its place.
func TestAppend(t *testing.T) {
	for _, c := range []struct {
		h    Header
		want []byte
	}{
		{Header{TTL: 63, MD: 2, Next: Ethernet, Path: 0x010203, Index: 255}, []byte{0x0f, 0xc2, 2, 3, 1, 2, 3, 255}},
		{Header{OAM: true, TTL: 1, MD: 1, Next: IPv4, Path: 7, Index: 9, Metadata: make([]byte, 16)},
			append([]byte{0x20, 0x46, 1, 1, 0, 0, 7, 9}, make([]byte, 16)...)},
	} {
		have, err := c.h.Append(nil)
		if err != nil || !bytes.Equal(have, c.want) {
			t.Errorf("%+v is %x, %v", c.h, have, err)
		}
	}
	for _, h := range []Header{{TTL: 64}, {MD: 1}, {MD: 2, Metadata: make([]byte, 3)}, {Path: 1 << 24}, {MD: 2, Metadata: make([]byte, 248)}, {MD: 2, Unassigned: 1}} {
		if have, err := h.Append(nil); err == nil {
			t.Errorf("%+v is %x", h, have)
		}
	}
}

// What is read is what was written, whatever the bytes; and nothing panics.
func FuzzParse(f *testing.F) {
	f.Add([]byte{0x0f, 0xc2, 2, 3, 1, 2, 3, 255})
	f.Add(append([]byte{0x20, 0x46, 1, 1, 0, 0, 7, 9}, make([]byte, 20)...))
	f.Add([]byte{0x00, 0x03, 2, 3, 0, 0, 1, 1, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, rest, err := Parse(b)
		if err != nil {
			return
		}
		again, err := h.Append(nil)
		if err != nil || !bytes.Equal(append(again, rest...), b) {
			t.Errorf("%x was read as %+v, which is %x, %v", b, h, again, err)
		}
	})
}
