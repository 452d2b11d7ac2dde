package xsk

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

type xdpDesc = unix.XDPDesc

// ring is a ring with one who produces and one who consumes; the kernel is
// one of them.
type ring[T uint64 | xdpDesc] struct {
	produced, consumed *uint32 // shared
	flags              *uint32
	slots              []T
	mine, theirs       uint32 // mine as it is, theirs as it was seen last
}

func (r *ring[T]) at(i uint32) *T { return &r.slots[i&uint32(len(r.slots)-1)] }

// waiting are entries to consume.
func (r *ring[T]) waiting() uint32 {
	if r.theirs == r.mine {
		r.theirs = atomic.LoadUint32(r.produced)
	}
	return r.theirs - r.mine
}

// room are entries to produce.
func (r *ring[T]) room() uint32 {
	n := uint32(len(r.slots))
	if r.mine-r.theirs == n {
		r.theirs = atomic.LoadUint32(r.consumed)
	}
	return n - (r.mine - r.theirs)
}

// wakeup says that the kernel wants to be called.
func (r *ring[T]) wakeup() bool { return atomic.LoadUint32(r.flags)&unix.XDP_RING_NEED_WAKEUP != 0 }

// mapRing makes a ring of n entries and maps it.
func mapRing[T uint64 | xdpDesc](s *Socket, fd int, r *ring[T], option, n int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_XDP, option, n); err != nil {
		return err
	}
	off, at, err := ringOffset(fd, option)
	if err != nil {
		return err
	}
	var entry T
	memory, err := unix.Mmap(fd, at, int(off.Desc)+n*int(unsafe.Sizeof(entry)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	s.maps = append(s.maps, memory)
	r.produced = (*uint32)(unsafe.Pointer(&memory[off.Producer]))
	r.consumed = (*uint32)(unsafe.Pointer(&memory[off.Consumer]))
	r.flags = (*uint32)(unsafe.Pointer(&memory[off.Flags]))
	r.slots = unsafe.Slice((*T)(unsafe.Pointer(&memory[off.Desc])), n)
	return nil
}

// ringOffset is where a ring is, and its parts in it.
func ringOffset(fd, option int) (off unix.XDPRingOffset, at int64, err error) {
	var all unix.XDPMmapOffsets
	size := uint32(unsafe.Sizeof(all))
	if _, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_MMAP_OFFSETS, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&size)), 0); errno != 0 {
		return off, 0, errno
	}
	if uintptr(size) < unsafe.Sizeof(all) {
		return off, 0, fmt.Errorf("this kernel cannot be told when to wake up, Linux 5.4 can: %w", unix.EOPNOTSUPP)
	}
	switch option {
	case unix.XDP_UMEM_FILL_RING:
		return all.Fr, unix.XDP_UMEM_PGOFF_FILL_RING, nil
	case unix.XDP_UMEM_COMPLETION_RING:
		return all.Cr, unix.XDP_UMEM_PGOFF_COMPLETION_RING, nil
	case unix.XDP_RX_RING:
		return all.Rx, unix.XDP_PGOFF_RX_RING, nil
	}
	return all.Tx, unix.XDP_PGOFF_TX_RING, nil
}
