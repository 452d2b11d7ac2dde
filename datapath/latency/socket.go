package latency

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

// socket is the one by which a host asks and answers in one family of addresses.
type socket struct {
	file *os.File
	raw  interface {
		Control(func(uintptr)) error
		Read(func(uintptr) bool) error
	}
	is6 bool

	sending sync.Mutex // what a socket is set to, and then sends
	class   uint32
	tos     int
}

// open makes a socket in the host's own namespace.
func open(host *kernel.Host, is6 bool) (*socket, error) {
	family := unix.AF_INET
	var at unix.Sockaddr = &unix.SockaddrInet4{Port: bpf.PortLatency}
	if is6 {
		family, at = unix.AF_INET6, &unix.SockaddrInet6{Port: bpf.PortLatency}
	}
	fd := -1
	err := kernel.In(host.Home(), func() (err error) {
		fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(options(fd, is6), unix.Bind(fd, at)); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("UDP port %d: %w", bpf.PortLatency, err)
	}
	s := &socket{file: os.NewFile(uintptr(fd), "latency"), is6: is6}
	if s.raw, err = s.file.SyscallConn(); err != nil {
		s.file.Close()
		return nil, err
	}
	return s, nil
}

// options: no checksums, since arrival is written into packets, and the addresses that
// packets came to.
func options(fd int, is6 bool) error {
	if !is6 {
		return cmp.Or(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1), unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1))
	}
	const noCheckTX, noCheckRX = 101, 102 // UDP_NO_CHECK6_TX and UDP_NO_CHECK6_RX of linux/udp.h
	return cmp.Or(
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1), unix.SetsockoptInt(fd, unix.IPPROTO_UDP, noCheckTX, 1),
		unix.SetsockoptInt(fd, unix.IPPROTO_UDP, noCheckRX, 1), unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1),
	)
}

// send sends a packet to the far end of a tunnel, in its class and as its packets
// are marked. What cannot be sent is lost.
func (s *socket) send(t Tunnel, p packet) {
	s.sending.Lock()
	defer s.sending.Unlock()
	_ = s.raw.Control(func(fd uintptr) {
		tos := bpf.TOSLease
		if t.BestEffort {
			tos = 0
		}
		if s.set(int(fd), t.Class, tos) != nil {
			return
		}
		if p.answer {
			p.answered = clock()
		}
		_ = unix.Sendmsg(int(fd), p.encode(), s.from(t.Local), s.to(t.Remote), unix.MSG_DONTWAIT)
	})
}

// set chooses class and type of service. The kernel makes a priority of the latter,
// so that the class comes last.
func (s *socket) set(fd int, class uint32, tos int) error {
	if s.class == class && s.tos == tos {
		return nil
	}
	s.class, s.tos = class, tos
	level, name := unix.IPPROTO_IP, unix.IP_TOS
	if s.is6 {
		level, name = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	return cmp.Or(unix.SetsockoptInt(fd, level, name, tos), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, int(class)))
}

func (s *socket) from(local netip.Addr) []byte {
	if s.is6 {
		return unix.PktInfo6(&unix.Inet6Pktinfo{Addr: local.As16()})
	}
	return unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: local.As4()})
}

func (s *socket) to(remote netip.Addr) unix.Sockaddr {
	if s.is6 {
		return &unix.SockaddrInet6{Port: bpf.PortLatency, Addr: remote.As16()}
	}
	return &unix.SockaddrInet4{Port: bpf.PortLatency, Addr: remote.As4()}
}

// received is a packet with its addresses.
type received struct {
	packet
	from, to netip.Addr
}

// receive hands packets to take until ctx ends.
func (s *socket) receive(ctx context.Context, take func(received)) {
	defer context.AfterFunc(ctx, func() { _ = s.file.SetReadDeadline(time.Unix(1, 0)) })()
	b, oob := make([]byte, packetSize+1), make([]byte, 256)
	for {
		err := s.raw.Read(func(fd uintptr) bool {
			n, size, _, from, err := unix.Recvmsg(int(fd), b, oob, unix.MSG_DONTWAIT)
			if err == nil {
				if r, ok := readPacket(b[:n], oob[:size], from); ok {
					take(r)
				}
			}
			return !errors.Is(err, unix.EAGAIN)
		})
		if err != nil || ctx.Err() != nil {
			return
		}
	}
}

// readPacket reads one that root of another host sent.
func readPacket(b, oob []byte, from unix.Sockaddr) (r received, ok bool) {
	port := 0
	switch at := from.(type) {
	case *unix.SockaddrInet4:
		r.from, port = netip.AddrFrom4(at.Addr), at.Port
	case *unix.SockaddrInet6:
		r.from, port = netip.AddrFrom16(at.Addr), at.Port
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || port != bpf.PortLatency {
		return r, false
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			r.to = netip.AddrFrom4([4]byte(m.Data[8:12])) // ipi_addr: where it was sent to
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			r.to = netip.AddrFrom16([16]byte(m.Data[:16]))
		}
	}
	r.packet, ok = decode(b, clock())
	return r, ok
}
