package xsk

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket is an AF_XDP socket: one receive queue of a device, with memory that it
// shares with the kernel (Documentation/networking/af_xdp.rst). Nobody else
// has a part of that memory, so that the death of one port's device, or of this
// process, leaves nothing behind.
//
// What leaves goes by a second socket on the same queue and memory, because
// nobody waits for that one: each frame that has left would wake whoever waits
// for a socket, only to be told that there is room.
type Socket struct {
	fd, out int
	memory  []byte
	chunk   int           // bytes of a frame's place, a power of two
	maps    [][]byte      // of the rings
	fill    ring[uint64]  // places the kernel may write to
	arrived ring[xdpDesc] // frames it wrote
	leaving ring[xdpDesc] // frames it is to send, of out
	gone    ring[uint64]  // places of those it has sent
	free    []uint64      // places to send from
	taken   uint32        // frames since their places were given back
	direct  bool          // the driver sends from memory, without copies
	Busy    bool          // frames wait in leaving for the device
	missed  uint64        // as it was counted last
}

const (
	arrivals   = 512 // as many frames as a packet socket's ring has
	departures = 512
	reserve    = 32 // places to send from, below which those of frames that were sent are taken back
	giveBack   = 16 // frames after which the kernel hears that they were taken
)

// newSocket makes a socket for frames of at most size bytes.
func newSocket(size int) (s *Socket, err error) {
	s = &Socket{fd: -1, out: -1, chunk: 2048}
	if size > s.chunk-unix.XDP_PACKET_HEADROOM {
		s.chunk = 4096 // the most: a page
	}
	if size > s.chunk-unix.XDP_PACKET_HEADROOM {
		return s, fmt.Errorf("its frames of %d bytes are longer than the %d of an AF_XDP socket: lower its mtu or use packet", size, s.chunk-unix.XDP_PACKET_HEADROOM)
	}
	for _, fd := range []*int{&s.fd, &s.out} {
		if *fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); errors.Is(err, unix.EAFNOSUPPORT) {
			return s, fmt.Errorf("this kernel lacks AF_XDP sockets (CONFIG_XDP_SOCKETS), as sublet doctor says: %w", err)
		} else if err != nil {
			return s, fmt.Errorf("make an AF_XDP socket: %w", err)
		}
	}
	if err = s.share(); err != nil {
		return s, fmt.Errorf("share memory of an AF_XDP socket: %w", err)
	}
	if err = s.mapRings(); err != nil {
		return s, fmt.Errorf("map rings of an AF_XDP socket: %w", err)
	}
	s.stock()
	return s, nil
}

// stock gives the kernel the first places, and keeps the others to send from.
func (s *Socket) stock() {
	for i := range arrivals {
		*s.fill.at(uint32(i)) = uint64(i * s.chunk)
	}
	s.fill.mine = arrivals
	atomic.StoreUint32(s.fill.produced, s.fill.mine)
	for i := range departures {
		s.free = append(s.free, uint64((arrivals+i)*s.chunk))
	}
}

func (s *Socket) share() (err error) {
	size := (arrivals + departures) * s.chunk
	s.memory, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	reg := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&s.memory[0]))), Len: uint64(size), Size: uint32(s.chunk)}
	if _, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(s.fd), unix.SOL_XDP, unix.XDP_UMEM_REG, uintptr(unsafe.Pointer(&reg)), unsafe.Sizeof(reg), 0); errno != 0 {
		return errno
	}
	return nil
}

func (s *Socket) mapRings() error {
	return cmp.Or(
		mapRing(s, s.fd, &s.fill, unix.XDP_UMEM_FILL_RING, arrivals),
		mapRing(s, s.fd, &s.gone, unix.XDP_UMEM_COMPLETION_RING, departures),
		mapRing(s, s.fd, &s.arrived, unix.XDP_RX_RING, arrivals),
		mapRing(s, s.out, &s.leaving, unix.XDP_TX_RING, departures))
}

// bind joins the socket to a queue of a device. A socket that was closed keeps
// the queue for a moment longer.
func (s *Socket) bind(link, queue int) (err error) {
	for range 5 {
		err = unix.Bind(s.fd, &unix.SockaddrXDP{Flags: unix.XDP_USE_NEED_WAKEUP, Ifindex: uint32(link), QueueID: uint32(queue)})
		if err != unix.EBUSY {
			break
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 5e6}, nil)
	}
	if err == nil {
		err = unix.Bind(s.out, &unix.SockaddrXDP{Flags: unix.XDP_SHARED_UMEM, Ifindex: uint32(link), QueueID: uint32(queue), SharedUmemFD: uint32(s.fd)})
	}
	if err != nil {
		return fmt.Errorf("bind an AF_XDP socket to its queue %d: %w", queue, err)
	}
	options, err := unix.GetsockoptInt(s.fd, unix.SOL_XDP, unix.XDP_OPTIONS)
	s.direct = err == nil && options&unix.XDP_OPTIONS_ZEROCOPY != 0
	return nil
}

// FD is the file to wait for frames at.
func (s *Socket) FD() int { return s.fd }

func (s *Socket) close() {
	for _, fd := range []*int{&s.out, &s.fd} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
	for _, m := range append(s.maps, s.memory) {
		if m != nil {
			unix.Munmap(m)
		}
	}
	s.maps, s.memory = nil, nil
}

// Next is a frame that arrived, until Release; nil: none.
func (s *Socket) Next() []byte {
	if s.arrived.waiting() == 0 {
		s.publish()
		if s.arrived.waiting() == 0 {
			return nil
		}
	}
	d := s.arrived.at(s.arrived.mine)
	return s.memory[d.Addr:][:d.Len]
}

// Release gives the place of the frame of Next back to the kernel, which hears
// of it when there are some.
func (s *Socket) Release() {
	*s.fill.at(s.fill.mine) = s.arrived.at(s.arrived.mine).Addr &^ uint64(s.chunk-1)
	s.arrived.mine++
	s.fill.mine++
	if s.taken++; s.taken == giveBack {
		s.publish()
	}
}

// publish tells the kernel which frames were taken.
func (s *Socket) publish() {
	if s.taken == 0 {
		return
	}
	s.taken = 0
	atomic.StoreUint32(s.arrived.consumed, s.arrived.mine)
	atomic.StoreUint32(s.fill.produced, s.fill.mine)
	if s.fill.wakeup() { // drivers that have no copy made
		unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	}
}

// reap takes back the places of frames that were sent.
func (s *Socket) reap() {
	n := s.gone.waiting()
	for range n {
		s.free = append(s.free, *s.gone.at(s.gone.mine))
		s.gone.mine++
	}
	if n > 0 {
		atomic.StoreUint32(s.gone.consumed, s.gone.mine)
	}
}

// vacant are the frames there is room for.
func (s *Socket) vacant() int {
	if len(s.free) < reserve {
		s.reap()
	}
	return min(len(s.free), int(s.leaving.room()))
}

// put returns the place of the next frame to send, which is n bytes long. There
// must be a vacant one.
func (s *Socket) put(n int) []byte {
	last := len(s.free) - 1
	at := s.free[last]
	s.free = s.free[:last]
	*s.leaving.at(s.leaving.mine) = xdpDesc{Addr: at, Len: uint32(n)}
	s.leaving.mine++
	return s.memory[at:][:n]
}

// Send has the kernel send what was put. Where it makes copies a call sends a
// few frames, and more calls the rest. What a busy device does not take stays.
func (s *Socket) Send() error {
	atomic.StoreUint32(s.leaving.produced, s.leaving.mine)
	s.Busy = false
	for range 1 + departures/16 {
		if s.unsent() == 0 || s.direct && !s.leaving.wakeup() {
			return nil
		}
		_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.out), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0, unix.EAGAIN, unix.EBUSY, unix.ENOBUFS:
		default:
			return errno
		}
	}
	s.Busy = s.unsent() > 0
	return nil
}

// unsent are the frames that were put and that the kernel has not taken.
func (s *Socket) unsent() uint32 { return s.leaving.mine - atomic.LoadUint32(s.leaving.consumed) }

// lost are frames that found no place since it was asked last.
func (s *Socket) lost() uint64 {
	var st unix.XDPStatistics
	size := uint32(unsafe.Sizeof(st))
	if _, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_XDP, unix.XDP_STATISTICS, uintptr(unsafe.Pointer(&st)), uintptr(unsafe.Pointer(&size)), 0); errno != 0 {
		return 0
	}
	now := st.Rx_dropped + st.Rx_ring_full
	was := s.missed
	s.missed = now
	return now - was
}
