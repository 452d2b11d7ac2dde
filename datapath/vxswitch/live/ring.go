package live

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is the receive ring of a packet socket (packet_mmap, TPACKET_V2): whoever
// sends to the device copies each frame, behind its virtio header, into the
// next slot, so that taking it needs no system call. A frame longer than a slot
// waits in the socket besides, whole, and is read from there.
type ring struct {
	memory []byte
	at     int
}

const (
	ringSlot  = 2048
	ringSlots = 512 // 1 MB a port: what a device may bring while the thread waits for its processor
	ringBlock = 64 << 10
)

// Fields of struct tpacket2_hdr (linux/if_packet.h).
const (
	ringStatus = 0
	ringLen    = 4
	ringSnap   = 8
	ringMac    = 12
	ringTCI    = 24
	ringTPID   = 26
)

func newRing(fd int) (*ring, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_COPY_THRESH, 1); err != nil {
		return nil, err
	}
	req := unix.TpacketReq{Block_size: ringBlock, Block_nr: ringSlot * ringSlots / ringBlock, Frame_size: ringSlot, Frame_nr: ringSlots}
	if _, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_PACKET, unix.PACKET_RX_RING, uintptr(unsafe.Pointer(&req)), unsafe.Sizeof(req), 0); errno != 0 {
		return nil, errno
	}
	memory, err := unix.Mmap(fd, 0, ringSlot*ringSlots, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &ring{memory: memory}, nil
}

func (r *ring) unmap() {
	if r != nil && r.memory != nil {
		unix.Munmap(r.memory)
		r.memory = nil
	}
}

// What take found.
type found int

const (
	nothing   found = iota
	whole           // it is in the slot
	elsewhere       // it must be read from the socket
	lost            // it was longer, and the socket had no room
)

// take copies the next frame into f.
func (r *ring) take(f *slot) found {
	b := r.memory[r.at*ringSlot:][:ringSlot]
	word := (*uint32)(unsafe.Pointer(&b[ringStatus]))
	status := atomic.LoadUint32(word)
	if status&unix.TP_STATUS_USER == 0 {
		return nothing
	}
	what := whole
	length, snap := binary.NativeEndian.Uint32(b[ringLen:]), binary.NativeEndian.Uint32(b[ringSnap:])
	switch {
	case length == snap:
		r.copy(f, b, snap)
	case status&unix.TP_STATUS_COPY != 0:
		what = elsewhere
	default:
		what = lost
	}
	atomic.StoreUint32(word, unix.TP_STATUS_KERNEL)
	r.at = (r.at + 1) % ringSlots
	return what
}

// copy copies a frame with its virtio header, and puts its VLAN tag back.
func (r *ring) copy(f *slot, b []byte, snap uint32) {
	mac := int(binary.NativeEndian.Uint16(b[ringMac:]))
	f.len = copy(f.small[headroom:], b[mac-virtio:mac+int(snap)])
	status := binary.NativeEndian.Uint32(b[ringStatus:])
	if status&unix.TP_STATUS_VLAN_VALID == 0 {
		return
	}
	tpid := binary.NativeEndian.Uint16(b[ringTPID:])
	if status&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
		tpid = unix.ETH_P_8021Q
	}
	f.tag(tpid, binary.NativeEndian.Uint16(b[ringTCI:]))
}

// batch is the most frames written by one system call.
const batch = 32

// mmsghdr is the kernel's struct mmsghdr.
type mmsghdr struct {
	unix.Msghdr
	n uint32
	_ [4]byte
}

// burst is what one call writes.
type burst struct {
	iov [batch]unix.Iovec
	msg [batch]mmsghdr
}

// writeAll writes frames to a socket by one call. It returns how many were
// written, and why the next one was not.
func (d *device) writeAll(all []slot, refs []uint32) (int, error) {
	if d.xdp != nil {
		return d.writeXDP(all, refs)
	}
	if d.out == nil {
		d.out = &burst{}
	}
	for i, ref := range refs {
		b, v := all[ref].whole(), &d.out.iov[i]
		v.Base = &b[0]
		v.SetLen(len(b))
		d.out.msg[i].Iov = v
		d.out.msg[i].SetIovlen(1)
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(d.tx), uintptr(unsafe.Pointer(&d.out.msg[0])), uintptr(len(refs)), 0, 0, 0)
	if errno != 0 {
		n = 0
	}
	return int(n), told(errno)
}
