// Package poll carries OpenFlow messages of many connections in one thread: what
// a controller, or a load of emulated switches, needs to serve hundreds of
// connections in turn. It reads what a socket has, up to a bound, hands over its
// messages, and writes all answers to them at once.
package poll

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

// Bounds of a connection.
const (
	mostRead    = 64 << 10 // bytes read in one turn: the share of a connection
	mostWaiting = 1 << 20  // bytes that wait to be written: beyond, nothing more is read
	mostConns   = 16384
)

// Handler gets what happens, in the thread of Loop.Run.
type Handler interface {
	Opened(*Conn)
	// Message is one that was received. m is valid until the call ends.
	Message(c *Conn, h of13.Header, m of13.Message)
	Closed(c *Conn, why error)
	// Tick comes before every wait, and says how long that may last at most.
	Tick(now time.Time) time.Duration
}

// Conn is a connection. What is sent is written when the turn ends.
type Conn struct {
	Data any       // the handler's own
	Seen time.Time // when something came last

	// Version is what its messages are written in; those that come are read by their
	// own, as long as the handler has not set it, and must have this one afterwards.
	Version uint8

	loop    *Loop
	fd      int
	tunnel  *tunnel // through which it goes, nil: none
	in, out []byte
	events  uint32 // that are waited for
	queued  bool   // in loop.dirty
	closed  bool
}

// Loop is a set of connections.
type Loop struct {
	// TLS, if it is set, gives the configuration of each connection that is accepted
	// or begun by Connect from then on. It is called by any thread.
	TLS func() (*tls.Config, error)

	epoll, listener int
	now             time.Time
	conns           map[int]*Conn
	dirty           []*Conn // with something to write, or closed, since the last wait
	decoder         of13.Decoder
	decoder10       of10.Decoder
	buffer          []byte
}

// New makes a loop without connections.
func New() (*Loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make an epoll: %w", err)
	}
	return &Loop{epoll: fd, listener: -1, conns: make(map[int]*Conn), buffer: make([]byte, mostRead+of13.MaxLen)}, nil
}

// Close ends all connections, without telling the handler.
func (l *Loop) Close() {
	for fd := range l.conns {
		unix.Close(fd)
	}
	clear(l.conns)
	if l.listener >= 0 {
		unix.Close(l.listener)
	}
	unix.Close(l.epoll)
}

// Listen accepts connections at an address, and gives the one it has: port 0 is
// any that is free.
func (l *Loop) Listen(at netip.AddrPort) (netip.AddrPort, error) {
	fd, err := socket(at)
	if err != nil {
		return at, err
	}
	l.listener = fd
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err := unix.Bind(fd, sockaddr(at)); err != nil {
		return at, fmt.Errorf("listen at %s: %w", at, err)
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return at, fmt.Errorf("listen at %s: %w", at, err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return at, fmt.Errorf("listen at %s: %w", at, err)
	}
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		at = netip.AddrPortFrom(at.Addr(), uint16(name.Port))
	case *unix.SockaddrInet6:
		at = netip.AddrPortFrom(at.Addr(), uint16(name.Port))
	}
	return at, l.watch(fd, unix.EPOLL_CTL_ADD, unix.EPOLLIN)
}

// Dial connects to an address; it waits for that.
func (l *Loop) Dial(at netip.AddrPort, data any) (*Conn, error) {
	conn, err := net.DialTimeout("tcp", at.String(), 10*time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	if e := raw.Control(func(original uintptr) {
		fd, err = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0)
	}); e != nil || err != nil {
		return nil, errors.Join(e, err)
	}
	return l.add(fd, data)
}

// Connect begins a connection, without waiting for it. Messages that are sent
// meanwhile go out when it is there; that it fails, Handler.Closed is told.
func (l *Loop) Connect(at netip.AddrPort, data any) (*Conn, error) {
	if l.TLS != nil {
		return l.connectTLS(at, data)
	}
	fd, err := socket(at)
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, sockaddr(at)); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		unix.Close(fd)
		return nil, fmt.Errorf("connect to %s: %w", at, err)
	}
	return l.add(fd, data)
}

func socket(at netip.AddrPort) (int, error) {
	family := unix.AF_INET6
	if at.Addr().Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("make a socket: %w", err)
	}
	return fd, nil
}

func sockaddr(at netip.AddrPort) unix.Sockaddr {
	if at.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
}

func (l *Loop) watch(fd, how int, events uint32) error {
	if err := unix.EpollCtl(l.epoll, how, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("watch a connection: %w", err)
	}
	return nil
}

func (l *Loop) add(fd int, data any) (*Conn, error) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err := l.watch(fd, unix.EPOLL_CTL_ADD, unix.EPOLLIN); err != nil {
		unix.Close(fd)
		return nil, err
	}
	c := &Conn{Data: data, Seen: time.Now(), loop: l, fd: fd, events: unix.EPOLLIN}
	l.conns[fd] = c
	return c, nil
}

// Run serves until done says so after a tick, or the machine fails.
func (l *Loop) Run(h Handler, done func() bool) error {
	events := make([]unix.EpollEvent, 256)
	for !done() {
		wait := h.Tick(time.Now())
		l.settle(h)
		n, err := unix.EpollWait(l.epoll, events, int((wait+time.Millisecond-1)/time.Millisecond))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for connections: %w", err)
		}
		l.now = time.Now()
		for _, e := range events[:max(n, 0)] {
			switch c := l.conns[int(e.Fd)]; {
			case int(e.Fd) == l.listener:
				l.accept(h)
			case c != nil:
				l.serve(c, e.Events, h)
			}
		}
		l.settle(h)
	}
	return nil
}

// accept takes on new connections, at most some in a turn, so that they do not
// hold up the others.
func (l *Loop) accept(h Handler) {
	const inATurn = 16
	for range inATurn {
		fd, _, err := unix.Accept4(l.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		if len(l.conns) >= mostConns {
			unix.Close(fd)
			continue
		}
		take := l.add
		if l.TLS != nil {
			take = l.acceptTLS
		}
		if c, err := take(fd, nil); err == nil {
			h.Opened(c)
		}
	}
}

// serve takes the turn of a connection.
func (l *Loop) serve(c *Conn, events uint32, h Handler) {
	if events&unix.EPOLLIN != 0 && c.events&unix.EPOLLIN != 0 {
		if err := l.read(c, h); err != nil {
			c.end(h, c.why(err))
			return
		}
	} else if events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		c.end(h, c.why(io.EOF))
		return
	}
	c.touch()
}

// read reads once, and hands over all whole messages.
func (l *Loop) read(c *Conn, h Handler) error {
	begun := copy(l.buffer, c.in)
	n, err := unix.Read(c.fd, l.buffer[begun:begun+mostRead])
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return err
	case n == 0:
		return io.EOF
	}
	c.Seen = l.now
	text := l.buffer[:begun+n]
	for len(text) >= of13.HeaderLen && !c.closed {
		header := of13.ReadHeader(text)
		size := int(header.Length)
		if size < of13.HeaderLen {
			return fmt.Errorf("a message of %d bytes: %w", size, of13.BadRequestBadLen)
		}
		if len(text) < size {
			break
		}
		l.message(c, header, text[:size], h)
		text = text[size:]
	}
	c.in = append(c.in[:0], text...)
	return nil
}

// message hands one over; what cannot be read is answered with the error that
// the specification has for it. Errors are not, lest two ends argue for ever.
func (l *Loop) message(c *Conn, header of13.Header, raw []byte, h Handler) {
	m, err := l.decode(c, raw)
	if err == nil {
		h.Message(c, header, m)
		return
	}
	var e of13.Error
	if errors.As(err, &e) && header.Type != of13.TypeError {
		c.Send(header.XID, &of13.ErrorMessage{Kind: e.Type(), Code: e.Code(), Data: raw[:min(len(raw), 64)]})
	}
}

func (l *Loop) decode(c *Conn, raw []byte) (m of13.Message, err error) {
	if c.Version == of10.Version || c.Version == 0 && raw[0] < of13.Version {
		_, m, err = l.decoder10.Decode(raw)
	} else {
		_, m, err = l.decoder.Decode(raw)
	}
	return m, err
}

// Now is when the turn began, which is enough for most purposes.
func (l *Loop) Now() time.Time { return l.now }

// Send writes a message when the turn ends.
func (c *Conn) Send(xid uint32, m of13.Message) {
	if c.closed {
		return
	}
	write := of13.Append
	if c.Version == of10.Version {
		write = of10.Append
	}
	if out, err := write(c.out, xid, m); err == nil { // longer than a message can be: a defect of the caller
		c.out = out
	}
	c.touch()
}

// Write writes bytes as they are, for those who test the other end.
func (c *Conn) Write(raw []byte) {
	c.out = append(c.out, raw...)
	c.touch()
}

// Close ends a connection when the turn ends; the handler is not told.
func (c *Conn) Close() {
	c.closed = true
	c.touch()
}

func (c *Conn) touch() {
	if !c.queued {
		c.queued = true
		c.loop.dirty = append(c.loop.dirty, c)
	}
}

func (c *Conn) end(h Handler, why error) {
	if !c.closed {
		h.Closed(c, why)
	}
	c.Close()
}

// settle writes what waits, and lets go of connections that ended.
func (l *Loop) settle(h Handler) {
	for i := 0; i < len(l.dirty); i++ { // ends may come while it goes on
		c := l.dirty[i]
		c.queued = false
		if l.conns[c.fd] != c {
			continue
		}
		if err := c.flush(); err != nil {
			c.end(h, c.why(err))
		}
		if c.closed {
			delete(l.conns, c.fd)
			unix.Close(c.fd)
		}
	}
	l.dirty = l.dirty[:0]
}

// flush writes what can be written now, and waits for what can come next: no
// more messages while too much waits for their sender.
func (c *Conn) flush() error {
	if len(c.out) > 0 {
		n, err := unix.Write(c.fd, c.out)
		if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return err
		}
		c.out = append(c.out[:0], c.out[max(n, 0):]...)
	}
	events := uint32(0)
	if len(c.out) < mostWaiting {
		events = unix.EPOLLIN
	}
	if len(c.out) > 0 {
		events |= unix.EPOLLOUT
	}
	if events == c.events {
		return nil
	}
	c.events = events
	return c.loop.watch(c.fd, unix.EPOLL_CTL_MOD, events)
}
