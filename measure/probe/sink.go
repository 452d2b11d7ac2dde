package probe

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/measure"
)

// sink receives one flow's datagrams from the moment it is opened, so that no
// start has to be timed, and counts those of the epoch that is expected.
type sink struct {
	fd      int
	frames  uint8 // protocol of the frames that it counts; 0: datagrams
	id      uint32
	run     uint64
	control [128]byte
	buffer  [1 << 16]byte

	mu    sync.Mutex
	tally *tally
	drops uint64 // at our socket, when the epoch began
}

// openSink opens a receiver and returns its port.
func openSink(run uint64, f flow) (*sink, uint16, error) {
	if f.Frames != 0 {
		return frameSink(run, f)
	}
	fd, port, err := udpSocket(f, f.Ports.UDP)
	if err != nil {
		return nil, 0, err
	}
	s := &sink{fd: fd, id: uint32(f.ID), run: run, tally: &tally{}}
	// Arrival times are the kernel's, which does not wait for a processor; one
	// read may take many datagrams (UDP_GRO), where the kernel can.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		unix.Close(fd)
		return nil, 0, fmt.Errorf("time datagrams on %s: %w", f.Interface, err)
	}
	_ = unix.SetsockoptInt(fd, solUDP, unix.UDP_GRO, 1)
	return s, port, nil
}

// expect begins to count a new epoch.
func (s *sink) expect(c command, f flow) {
	drops := socketDrops(s.fd)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops = drops
	s.tally = &tally{epoch: c.Epoch, warmUp: int64(c.WarmUp), window: int64(c.Window), limit: sequenceLimit(f, c.length())}
}

// sequenceLimit is twice what a sender may number, so that a forged number
// cannot make the receiver remember without bound.
func sequenceLimit(f flow, length time.Duration) uint64 {
	return 1000 + uint64(2*float64(f.Rate)*length.Seconds()/float64(8*max(f.MTU, headerSize)))
}

// settle waits until all that was sent has arrived, or nothing came for quiet.
func (s *sink) settle(ctx context.Context, sent uint64, quiet time.Duration) arrived {
	counts := s.counts()
	for since := time.Now(); counts.Distinct < sent && time.Since(since) < quiet && ctx.Err() == nil; {
		time.Sleep(quiet / 50)
		now := s.counts()
		if now.Distinct != counts.Distinct {
			since = time.Now()
		}
		counts = now
	}
	counts.Overflow = socketDrops(s.fd) - s.drops
	return counts
}

func (s *sink) counts() arrived {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tally.arrived()
}

// loop receives until the context ends, then closes the socket.
func (s *sink) loop(ctx context.Context) {
	precise()
	defer unix.Close(s.fd)
	for ctx.Err() == nil {
		n, control, err := s.read()
		if err != nil {
			if !transient(err) {
				return
			}
			continue
		}
		segment, at := ancillary(control)
		if segment <= 0 {
			segment = n
		}
		s.take(s.buffer[:n], segment, at)
	}
}

// read is recvmsg without an address, which would be allocated every time.
func (s *sink) read() (n int, control []byte, err error) {
	vector := unix.Iovec{Base: &s.buffer[0], Len: uint64(len(s.buffer))}
	message := unix.Msghdr{Iov: &vector, Iovlen: 1, Control: &s.control[0], Controllen: uint64(len(s.control))}
	got, _, errno := unix.Syscall(unix.SYS_RECVMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&message)), 0)
	if errno != 0 {
		return 0, nil, errno
	}
	return int(got), s.control[:message.Controllen], nil
}

// take counts the datagrams of one read that are ours.
func (s *sink) take(b []byte, segment int, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var datagrams, payload uint64
	for len(b) > 0 {
		one := b[:min(segment, len(b))]
		b = b[len(one):]
		h, ok := s.header(one)
		if !ok || h.run != s.run || h.flow != s.id || h.epoch != s.tally.epoch || h.epoch == 0 {
			continue
		}
		s.tally.number(h.seq)
		datagrams++
		payload += s.payload(one)
	}
	if datagrams > 0 {
		s.tally.arrive(at, datagrams, payload)
	}
}

// header is the probe's own in what arrived.
func (s *sink) header(b []byte) (header, bool) {
	if s.frames != 0 {
		b = b[min(len(b), frameHeader(b)):]
	}
	return parseHeader(b)
}

// payload is what a datagram of the size of what arrived has.
func (s *sink) payload(b []byte) uint64 {
	if s.frames != 0 {
		return uint64(len(b) - measure.IPv4Header - measure.UDPHeader)
	}
	return uint64(len(b))
}

// ancillary reads the segment size (0: not segmented) and the arrival time.
func ancillary(control []byte) (segment int, at int64) {
	for len(control) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		if h.Len < unix.SizeofCmsghdr || h.Len > uint64(len(control)) {
			break
		}
		data := control[unix.SizeofCmsghdr:h.Len]
		switch {
		case h.Level == solUDP && h.Type == unix.UDP_GRO && len(data) >= 4:
			segment = int(binary.NativeEndian.Uint32(data))
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS && len(data) >= 16:
			at = int64(binary.NativeEndian.Uint64(data))*1e9 + int64(binary.NativeEndian.Uint64(data[8:]))
		}
		control = control[min(len(control), unix.CmsgSpace(len(data))):]
	}
	if at == 0 {
		at = time.Now().UnixNano()
	}
	return segment, at
}
