package live

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"sublet/vnet"
)

// The virtio network header of 10 bytes (VIRTIO 1.2, 5.1.6; the legacy form
// that TAP devices and packet sockets share by default).
const (
	virtio        = 10
	flagNeedsCsum = 1
	gsoNone       = 0
	gsoTCPv4      = 1
	gsoTCPv6      = 4
	gsoUDP        = 5 // of datagrams (USO), not of fragments
	gsoECN        = 0x80
)

const (
	headroom = 4                    // for a VLAN tag that the kernel took off
	small    = 2048                 // bytes of a frame in its own slot
	big      = 65536 + 64           // bytes of the rest of a frame, or all of it, borrowed
	longest  = vnet.Bytes(96 << 10) // longest frame: a segment of 64 KB with the headers of its parts
	most     = 1 << 17              // frames at most; 256 MB of slots
	chunk    = 256                  // slots are made so many at a time
)

// slot is a frame in memory: its first bytes in a piece of its own, and the
// rest, if there is one, in a borrowed piece of 64 KB. So one read needs to
// know no size, small frames take little room, and large ones are not copied.
type slot struct {
	small []byte // headroom, virtio header, frame
	big   []byte // nil for most
	bigAt int    // where in big the rest begins
	len   int    // virtio header and frame
	off   int    // where the virtio header begins in small
	refs  int32  // outputs it is queued for
	next  uint32 // free slot behind it
}

// slots is a pool of frames. Slot 0 is not used.
type slots struct {
	all  []slot
	free uint32
	used int
	bigs [][]byte
}

// take returns a free slot, or 0 if there is none.
func (s *slots) take() uint32 {
	if s.free == 0 && !s.more() {
		return 0
	}
	n := s.free
	s.free = s.all[n].next
	s.used++
	return n
}

func (s *slots) more() bool {
	if len(s.all) >= most {
		return false
	}
	if len(s.all) == 0 {
		s.all = make([]slot, 1, most)
	}
	memory := make([]byte, chunk*small)
	for i := range chunk {
		s.all = append(s.all, slot{small: memory[i*small : (i+1)*small : (i+1)*small], next: s.free})
		s.free = uint32(len(s.all) - 1)
	}
	return true
}

// give puts a slot back, and its borrowed piece.
func (s *slots) give(n uint32) {
	f := &s.all[n]
	if f.big != nil {
		s.bigs = append(s.bigs, f.big)
		f.big = nil
	}
	f.next = s.free
	s.free = n
	s.used--
}

// borrow returns a piece of 64 KB.
func (s *slots) borrow() []byte {
	if n := len(s.bigs); n > 0 {
		b := s.bigs[n-1]
		s.bigs = s.bigs[:n-1]
		return b
	}
	return make([]byte, big)
}

// frame is the part of the frame that lookups read.
func (f *slot) frame() []byte {
	return f.small[f.off+virtio : min(f.off+f.len, small)]
}

// iovecs are the pieces to write.
func (f *slot) iovecs(v *[2]unix.Iovec) []unix.Iovec {
	first := min(f.len, small-f.off)
	v[0].Base = &f.small[f.off]
	v[0].SetLen(first)
	if f.len == first {
		return v[:1]
	}
	v[1].Base = &f.big[f.bigAt]
	v[1].SetLen(f.len - first)
	return v[:2]
}

// size is the bytes of frame on a wire: of a segment that will be cut into
// parts, all parts with their headers.
func (f *slot) size() int32 {
	h := f.small[f.off : f.off+virtio]
	n := f.len - virtio
	if h[1]&^gsoECN == gsoNone {
		return int32(n)
	}
	headers := int(binary.NativeEndian.Uint16(h[2:]))
	part := int(binary.NativeEndian.Uint16(h[4:]))
	if part == 0 || headers < 14 || headers >= n {
		return int32(n)
	}
	parts := (n - headers + part - 1) / part
	return int32(min(n+(parts-1)*headers, int(longest)+1))
}

// tag puts a VLAN tag that the kernel had taken off back into the frame.
func (f *slot) tag(proto, tci uint16) {
	copy(f.small, f.small[f.off:f.off+virtio+12])
	f.off, f.len = f.off-headroom, f.len+4
	b := f.small[virtio+12:]
	binary.BigEndian.PutUint16(b, proto)
	binary.BigEndian.PutUint16(b[2:], tci)
	for _, at := range []int{2, 6} { // hdr_len and csum_start count from the frame's begin
		if v := binary.NativeEndian.Uint16(f.small[at:]); v != 0 {
			binary.NativeEndian.PutUint16(f.small[at:], v+4)
		}
	}
}
