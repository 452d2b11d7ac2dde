package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// flows a blast consists of: source ports.
const flows = 16

// burst is how many frames one system call sends.
const burst = 64

// blast sends frames of size bytes (without the checksum) from one place to
// another as fast as one processor can, and returns how many arrive
// in a second of its time.
func blast(from, to place, size, cpu int, window time.Duration) (float64, error) {
	sink, err := countAt(to, discard)
	if err != nil {
		return 0, err
	}
	defer sink.Close()
	return blastInto(sink, from, to, size, cpu, window)
}

// transmit is blast with the frames counted and dropped where they leave the
// host: the cost of sending alone.
func transmit(n network, size, cpu int, window time.Duration) (float64, error) {
	if n.wire.ns == nil {
		return math.NaN(), nil
	}
	if _, err := n.from.hopTo(n.to); err != nil {
		return 0, err
	}
	sink, err := countOut(n.wire)
	if err != nil {
		return 0, err
	}
	defer sink.Close()
	return blastInto(sink, n.from, n.to, size, cpu, window)
}

// blastInto sends and returns what a hook counts in a second of the
// sender's processor time.
func blastInto(sink *hook, from, to place, size, cpu int, window time.Duration) (float64, error) {
	next, err := from.hopTo(to)
	if err != nil {
		return 0, err
	}
	frames := make([][]byte, flows)
	for i := range frames {
		frames[i] = frame(from, to, next, size, 20000+i, discard)
	}
	stop := make(chan struct{})
	sender := pinned(cpu, func() error { return sendFrames(from, frames, stop) })
	rate, err := measured(cpu, window, sink.packets, sender)
	close(stop)
	return rate, errors.Join(err, <-sender.done)
}

// frame is a UDP datagram in IPv4 in Ethernet, without a UDP checksum.
func frame(from, to place, next hop, size, port, target int) []byte {
	f := make([]byte, size)
	copy(f, next.to)
	copy(f[6:], next.from)
	binary.BigEndian.PutUint16(f[12:], 0x0800)
	ip := f[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(ip[2:], uint16(size-14))
	ends := [2][4]byte{from.addr.As4(), to.addr.As4()}
	copy(ip[12:], ends[0][:])
	copy(ip[16:], ends[1][:])
	binary.BigEndian.PutUint16(ip[10:], ^sum(ip[:20]))
	udp := ip[20:]
	binary.BigEndian.PutUint16(udp, uint16(port))
	binary.BigEndian.PutUint16(udp[2:], uint16(target))
	binary.BigEndian.PutUint16(udp[4:], uint16(size-34))
	return f
}

// sum is the ones' complement sum (RFC 1071).
func sum(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// message is struct mmsghdr.
type message struct {
	unix.Msghdr
	sent uint32
	_    uint32
}

// sendFrames sends until stop, on a packet socket.
func sendFrames(from place, frames [][]byte, stop chan struct{}) error {
	fd, err := packetSocket(from)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	vectors, messages := make([]unix.Iovec, burst), make([]message, burst)
	for i := range messages {
		f := frames[i%len(frames)]
		vectors[i].Base = &f[0]
		vectors[i].SetLen(len(f))
		messages[i].Iov = &vectors[i]
		messages[i].SetIovlen(1)
	}
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		_, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&messages[0])), burst, 0, 0, 0)
		if errno != 0 && errno != unix.ENOBUFS && errno != unix.EAGAIN && errno != unix.EINTR {
			return fmt.Errorf("send from %s: %w", from.addr, errno)
		}
	}
}

func packetSocket(p place) (fd int, err error) {
	link, err := p.link()
	if err != nil {
		return -1, err
	}
	err = kernel.In(p.ns, func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: 0, Ifindex: link.Attrs().Index})
}
