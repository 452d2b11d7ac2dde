package pktgen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// flows a load consists of: source ports from the first on.
const flows, firstPort = 16, 20000

// burst is how many frames one system call sends.
const burst = 64

// Arrive sends frames of size bytes (without the checksum) from one place to
// another as fast as one processor can, and returns how many arrive in a
// second of its time.
func Arrive(from, to Place, size, cpu int, window time.Duration) (float64, error) {
	return counted(from, to, window, cpu, func() (*Counter, error) { return CountAt(to, Discard) }, sender(from, to, size, cpu))
}

// Flows is Arrive with a number of flows, from the same station to the same
// hardware address: each goes to an IPv4 address of its own.
func Flows(from, to Place, size, number, cpu int, window time.Duration) (float64, error) {
	return counted(from, to, window, cpu, func() (*Counter, error) { return CountAt(to, Discard) }, func(next hop) (Worker, error) {
		frames := make([][]byte, number)
		for i := range frames {
			p := to
			p.Addr = Flow(i)
			frames[i] = frame(from, p, next, size, firstPort, Discard)
		}
		return pinned(cpu, func(stop chan struct{}) error { return sendFrames(from, frames, stop) }), nil
	})
}

// Flow is where the datagrams of one of several flows go.
func Flow(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 128 + byte(i>>16), byte(i >> 8), byte(i)})
}

// Leave is Arrive with the frames counted and dropped where they leave the
// host by a wire: the cost of sending alone.
func Leave(from, to, wire Place, size, cpu int, window time.Duration) (float64, error) {
	return counted(from, to, window, cpu, func() (*Counter, error) { return CountOut(wire) }, sender(from, to, size, cpu))
}

// Reach is Arrive with the frames counted and dropped where they enter the next
// host, with whatever headers: the cost of sending and of one wire.
func Reach(from, to, next Place, size, cpu int, window time.Duration) (float64, error) {
	return counted(from, to, window, cpu, func() (*Counter, error) { return CountIn(next) }, sender(from, to, size, cpu))
}

func sender(from, to Place, size, cpu int) func(hop) (Worker, error) {
	return func(next hop) (Worker, error) { return begin(from, to, next, size, cpu, Discard), nil }
}

// counted loads a path and returns what is counted in a second of the
// processor's time. The way is found before the counter cuts it.
func counted(from, to Place, window time.Duration, cpu int, count func() (*Counter, error), load func(hop) (Worker, error)) (float64, error) {
	next, err := from.hopTo(to)
	if err != nil {
		return 0, err
	}
	counter, err := count()
	if err != nil {
		return 0, err
	}
	defer counter.Close()
	worker, err := load(next)
	if err != nil {
		return 0, err
	}
	rate, err := measured(cpu, from.Processes, window, counter.Packets, worker)
	return rate, errors.Join(err, worker.Stop())
}

// Start sends frames to a port without end, pinned to one processor.
func Start(from, to Place, size, cpu, port int) (Worker, error) {
	next, err := from.hopTo(to)
	if err != nil {
		return Worker{}, err
	}
	return begin(from, to, next, size, cpu, port), nil
}

// StartTo is Start towards a station whose hardware address is known: nobody is
// asked for it, so what is between may be a program that answers nobody.
func StartTo(from, to Place, station net.HardwareAddr, size, cpu, port int) (Worker, error) {
	link, err := from.Link()
	if err != nil {
		return Worker{}, err
	}
	return begin(from, to, hop{link.Attrs().HardwareAddr, station}, size, cpu, port), nil
}

func begin(from, to Place, next hop, size, cpu, port int) Worker {
	frames := make([][]byte, flows)
	for i := range frames {
		frames[i] = frame(from, to, next, size, firstPort+i, port)
	}
	return pinned(cpu, func(stop chan struct{}) error { return sendFrames(from, frames, stop) })
}

// frame is a UDP datagram in IPv4 in Ethernet, without a UDP checksum.
func frame(from, to Place, next hop, size, port, target int) []byte {
	f := make([]byte, size)
	copy(f, next.to)
	copy(f[6:], next.from)
	binary.BigEndian.PutUint16(f[12:], 0x0800)
	ip := f[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(ip[2:], uint16(size-14))
	ends := [2][4]byte{from.Addr.As4(), to.Addr.As4()}
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
func sendFrames(from Place, frames [][]byte, stop chan struct{}) error {
	fd, err := packetSocket(from)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	number := (len(frames) + burst - 1) / burst * burst
	vectors, messages := make([]unix.Iovec, number), make([]message, number)
	for i := range messages {
		f := frames[i%len(frames)]
		vectors[i].Base = &f[0]
		vectors[i].SetLen(len(f))
		messages[i].Iov = &vectors[i]
		messages[i].SetIovlen(1)
	}
	for at := 0; ; at = (at + burst) % number {
		select {
		case <-stop:
			return nil
		default:
		}
		// Raw: the call takes longer than Go lets one have its processor, and would
		// wake a thread each time.
		_, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&messages[at])), burst, 0, 0, 0)
		if errno != 0 && errno != unix.ENOBUFS && errno != unix.EAGAIN && errno != unix.EINTR {
			return fmt.Errorf("send from %s: %w", from.Addr, errno)
		}
	}
}

func packetSocket(p Place) (fd int, err error) {
	link, err := p.Link()
	if err != nil {
		return -1, err
	}
	err = kernel.In(p.NS, func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: 0, Ifindex: link.Attrs().Index})
}
