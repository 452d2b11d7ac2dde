package live

import (
	"encoding/binary"

	"sublet/vnet"
)

// The virtio network header of 10 bytes (VIRTIO 1.2, 5.1.6; the legacy form
// that TAP devices and packet sockets share by default).
const (
	virtio  = 10
	gsoNone = 0
	gsoECN  = 0x80
)

const (
	headroom = 4                    // for a VLAN tag that the kernel took off
	small    = 2048                 // bytes of a frame in its own slot
	big      = 65536 + 64           // bytes of a longer frame, borrowed
	longest  = vnet.Bytes(96 << 10) // longest frame: a segment of 64 KB with the headers of its parts
	most     = 1 << 17              // frames at most; 256 MB of slots
	pieces   = 8                    // of 64 KB are made at a time; their first bytes lie in different lines of a cache
	chunk    = 256                  // slots are made so many at a time
)

// slot is a frame in memory, in one piece: in memory of its own if it is short,
// else in a borrowed piece of 64 KB. So one read needs to know no size, small
// frames take little room, and large ones are not copied.
type slot struct {
	small []byte // its own piece
	mem   []byte // where the frame is: headroom, virtio header, frame
	len   int    // virtio header and frame
	off   int    // where the virtio header begins
	refs  int32  // outputs it is queued for
	next  uint32 // free slot behind it
}

// slots is a pool of frames. Slot 0 is not used. What was given back last is
// taken first, because the processor's caches still have it.
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
		own := memory[i*small : (i+1)*small : (i+1)*small]
		s.all = append(s.all, slot{small: own, mem: own, next: s.free})
		s.free = uint32(len(s.all) - 1)
	}
	return true
}

// give puts a slot back, and its borrowed piece.
func (s *slots) give(n uint32) {
	f := &s.all[n]
	if len(f.mem) != small {
		s.back(f.mem)
		f.mem = f.small
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
	memory := make([]byte, pieces*big)
	for i := 1; i < pieces; i++ {
		s.back(memory[i*big : (i+1)*big : (i+1)*big])
	}
	return memory[:big:big]
}

// back takes a borrowed piece back.
func (s *slots) back(piece []byte) { s.bigs = append(s.bigs, piece) }

// header is the virtio header.
func (f *slot) header() []byte { return f.mem[f.off : f.off+virtio] }

// frame is the frame behind it.
func (f *slot) frame() []byte { return f.mem[f.off+virtio : f.off+f.len] }

// whole is both, as devices have it.
func (f *slot) whole() []byte { return f.mem[f.off : f.off+f.len] }

// came makes f what a device wrote, n bytes, to a borrowed piece behind the
// headroom; kept says that f keeps the piece.
func (f *slot) came(piece []byte, n int) (kept bool) {
	f.off, f.len = headroom, n
	if n > small-headroom {
		f.mem = piece
		return true
	}
	copy(f.small[headroom:], piece[headroom:headroom+n])
	return false
}

// size is the bytes of frame on a wire: of a segment that will be cut into
// parts, all parts with their headers.
func (f *slot) size() int32 {
	h := f.header()
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
	copy(f.mem, f.mem[f.off:f.off+virtio+12])
	f.off, f.len = f.off-headroom, f.len+4
	b := f.mem[virtio+12:]
	binary.BigEndian.PutUint16(b, proto)
	binary.BigEndian.PutUint16(b[2:], tci)
	for _, at := range []int{2, 6} { // hdr_len and csum_start count from the frame's begin
		if v := binary.NativeEndian.Uint16(f.mem[at:]); v != 0 {
			binary.NativeEndian.PutUint16(f.mem[at:], v+4)
		}
	}
}
