package probe

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/measure"
)

const (
	// congestion control of every stream, set explicitly: hosts differ in
	// their default, and BBR's probing is not what a promise is judged by.
	congestion = "cubic"

	// connectTime bounds the making of a connection: SYNs are repeated after
	// 1 and 3 s.
	connectTime = 4 * time.Second

	// chunk is what one call writes or reads.
	chunk = 256 << 10
)

// control ties a TCP socket to the flow's interface.
func control(f flow) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		return onSocket(c, func(fd int) error {
			if err := unix.BindToDevice(fd, f.Interface); err != nil {
				return fmt.Errorf("bind TCP socket to device %s: %w", f.Interface, err)
			}
			return setClass(fd, f)
		})
	}
}

// onSocket does something to a socket's descriptor.
func onSocket(c syscall.RawConn, do func(fd int) error) error {
	var inner error
	if err := c.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// listenTCP opens the flow's listener and returns its port.
func listenTCP(ctx context.Context, f flow) (*net.TCPListener, uint16, error) {
	config := net.ListenConfig{Control: control(f)}
	config.SetMultipathTCP(false)
	l, err := config.Listen(ctx, "tcp4", netip.AddrPortFrom(f.Local, f.Ports.TCP).String())
	if err != nil {
		return nil, 0, fmt.Errorf("listen on %s of %s: %w", f.Local, f.Interface, err)
	}
	return l.(*net.TCPListener), l.Addr().(*net.TCPAddr).AddrPort().Port(), nil
}

// dialTCP connects one stream of a flow and says whose it is.
func dialTCP(ctx context.Context, run uint64, f flow) (*net.TCPConn, error) {
	dialer := net.Dialer{Control: control(f), Timeout: connectTime, LocalAddr: &net.TCPAddr{IP: f.Local.AsSlice()}}
	dialer.SetMultipathTCP(false)
	c, err := dialer.DialContext(ctx, "tcp4", netip.AddrPortFrom(f.Peer, f.Ports.TCP).String())
	if err != nil {
		return nil, fmt.Errorf("connect to %s by %s: %w", f.Peer, f.Interface, err)
	}
	conn := c.(*net.TCPConn)
	if err := greet(conn, run, f); err != nil {
		conn.Close()
		return nil, fmt.Errorf("stream to %s by %s: %w", f.Peer, f.Interface, err)
	}
	return conn, nil
}

// greet says whose a connection is and prepares it for its load.
func greet(conn *net.TCPConn, run uint64, f flow) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	if err := onSocket(raw, func(fd int) error {
		return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion)
	}); err != nil {
		return fmt.Errorf("set congestion control %s: %w", congestion, err)
	}
	// Nagle's algorithm keeps every segment full under load.
	if err := conn.SetNoDelay(false); err != nil {
		return err
	}
	_, err = conn.Write(hello(run, f.ID))
	return err
}

func hello(run uint64, id int) []byte {
	b := make([]byte, headerSize)
	header{run: run, flow: uint32(id)}.put(b)
	return b[:helloSize]
}

// greeted reads a new connection's hello and says whether it is the flow's.
func greeted(conn *net.TCPConn, run uint64, f flow) bool {
	if f.Peer.IsValid() && conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap() != f.Peer {
		return false // of translated ones the run's number alone says whose they are
	}
	_ = conn.SetDeadline(time.Now().Add(connectTime))
	b := make([]byte, helloSize)
	for n := 0; n < len(b); {
		m, err := conn.Read(b[n:])
		if err != nil {
			return false
		}
		n += m
	}
	_ = conn.SetDeadline(time.Time{})
	return binary.BigEndian.Uint64(b) == run && binary.BigEndian.Uint32(b[8:]) == uint32(f.ID)
}

// count reads what a connection has received so far.
func count(conn *net.TCPConn) (c measure.TCPCount) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return c
	}
	_ = onSocket(raw, func(fd int) error { // fails only when the connection is closed: nothing received
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return err
		}
		const timestamps = 1 // TCPI_OPT_TIMESTAMPS, linux/tcp.h
		c = received(uint64(info.Segs_in), uint64(info.Data_segs_in), info.Bytes_received, uint64(info.Rcv_mss), measure.TCPHeaders(info.Options&timestamps != 0))
		return nil
	})
	return c
}

// received makes a count. A large packet that a program put a tunnel's headers
// on loses its number of segments (bpf_skb_adjust_room zeroes gso_segs), and
// where nothing cut it on its way the receiver counts one. So segments that
// would have been larger than any are counted by their payload.
func received(segments, data, payload, largest, header uint64) measure.TCPCount {
	if largest > 0 && payload > data*largest {
		full := (payload + largest - 1) / largest
		segments, data = segments-min(data, segments)+full, full
	}
	return measure.TCPCount{Segments: segments, DataSegments: data, Payload: payload, Headers: segments * header}
}

// limitUnsent keeps little more than the window in the socket, so that a
// stream that is told to end ends soon.
func limitUnsent(conn *net.TCPConn, bytes int) {
	if raw, err := conn.SyscallConn(); err == nil {
		_ = onSocket(raw, func(fd int) error { // without it, the end only comes later
			return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes)
		})
	}
}

// limitPace bounds a stream's rate of frames, in bit/s; 0: not at all. The
// kernel paces payload (tcp_update_skb_after_send), here of full segments.
func limitPace(conn *net.TCPConn, frames float64, mtu int) {
	frame := float64(mtu + measure.EthernetHeader)
	bytes := uint64(frames / 8 * (frame - float64(measure.TCPHeaders(true))) / frame)
	if raw, err := conn.SyscallConn(); err == nil && bytes > 0 {
		_ = onSocket(raw, func(fd int) error { // old kernels do not pace: the rate shows it
			return unix.SetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, bytes)
		})
	}
}

// pour writes until the deadline, then ends the stream.
func pour(conn *net.TCPConn, until time.Time, unsent int) {
	limitUnsent(conn, unsent)
	_ = conn.SetWriteDeadline(until)
	for buffer := make([]byte, chunk); ; {
		if _, err := conn.Write(buffer); err != nil {
			break
		}
	}
	_ = conn.CloseWrite()
}

// drain reads until the stream ends or the deadline, throwing the bytes away
// in the kernel (MSG_TRUNC), and calls got after every read.
func drain(conn *net.TCPConn, until time.Time, got func()) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.SetReadDeadline(until)
	buffer := make([]byte, chunk)
	for over := false; !over; {
		err := raw.Read(func(fd uintptr) bool {
			n, _, errno := unix.Syscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&buffer[0])),
				uintptr(len(buffer)), unix.MSG_TRUNC|unix.MSG_DONTWAIT, 0, 0)
			over = errno == 0 && n == 0 || errno != 0 && errno != unix.EAGAIN && errno != unix.EINTR
			return errno != unix.EAGAIN
		})
		if err != nil {
			return
		}
		got()
	}
}
