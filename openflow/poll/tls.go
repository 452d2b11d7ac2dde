package poll

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// helloWithin is how long a connection may take until both ends have shown their
// certificates.
const helloWithin = 10 * time.Second

// tunnel carries a connection's bytes through TLS: two threads between the network and
// one end of a pair of sockets, of which the loop has the other. What waits is in the
// sockets' buffers, and so is bounded.
type tunnel struct{ failed atomic.Pointer[error] }

// why is the reason that a connection ended for, which the tunnel knows better.
func (c *Conn) why(err error) error {
	if c.tunnel != nil {
		if known := c.tunnel.failed.Load(); known != nil {
			return *known
		}
	}
	return err
}

// connectTLS is Connect with TLS.
func (l *Loop) connectTLS(at netip.AddrPort, data any) (*Conn, error) {
	return l.through(data, func(ctx context.Context) (*tls.Conn, error) {
		config, err := l.TLS()
		if err != nil {
			return nil, err
		}
		dialer := tls.Dialer{Config: config}
		conn, err := dialer.DialContext(ctx, "tcp", at.String())
		if err != nil {
			return nil, err
		}
		return conn.(*tls.Conn), nil
	})
}

// acceptTLS takes on a connection that was accepted, and its descriptor.
func (l *Loop) acceptTLS(fd int, data any) (*Conn, error) {
	plain, err := connOf(fd)
	if err != nil {
		return nil, err
	}
	c, err := l.through(data, func(ctx context.Context) (*tls.Conn, error) {
		config, err := l.TLS()
		if err != nil {
			plain.Close()
			return nil, err
		}
		conn := tls.Server(plain, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			plain.Close()
			return nil, err
		}
		return conn, nil
	})
	if err != nil {
		plain.Close()
	}
	return c, err
}

// connOf makes a connection of a descriptor, which goes.
func connOf(fd int) (net.Conn, error) {
	file := os.NewFile(uintptr(fd), "connection")
	defer file.Close()
	return net.FileConn(file)
}

// through makes a connection whose other end is what open gives, once it is there. What
// is sent before waits.
func (l *Loop) through(data any, open func(context.Context) (*tls.Conn, error)) (*Conn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	near, err := connOf(pair[1])
	if err != nil {
		unix.Close(pair[0])
		return nil, err
	}
	c, err := l.add(pair[0], data)
	if err != nil {
		near.Close()
		return nil, err
	}
	c.tunnel = &tunnel{}
	go c.tunnel.carry(near, open)
	return c, nil
}

// carry opens the far end and copies until one of both ends.
func (t *tunnel) carry(near net.Conn, open func(context.Context) (*tls.Conn, error)) {
	defer near.Close()
	ctx, cancel := context.WithTimeout(context.Background(), helloWithin)
	far, err := open(ctx)
	cancel()
	if err != nil {
		err = fmt.Errorf("TLS: %w", err)
		t.failed.Store(&err)
		return
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.Copy(far, near)
		far.Close()
	}()
	if _, err := io.Copy(near, far); err != nil {
		err = fmt.Errorf("TLS: %w", err)
		t.failed.Store(&err)
	}
	near.Close()
	far.Close()
	<-sent
}
