package channel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 8 * time.Second
	nearRetry  = time.Second // of a Hub that is Near: most that a try takes, and the last wait
	dialLimit  = 5 * time.Second
	stable     = 5 * time.Second // a connection that lasted so long starts the waits anew

	mostPassive = 16 // connections at one address; further ones are closed at once
)

// Target is where a controller is: tcp:HOST:PORT or tls:HOST:PORT to connect to,
// ptcp:[HOST]:PORT or ptls:[HOST]:PORT to listen at. As Open vSwitch writes them,
// ssl is tls, and ptcp:PORT and ptcp:PORT:HOST are read, too.
type Target struct {
	Secure, Passive bool
	Address         string // HOST:PORT
}

// ParseTarget reads one.
func ParseTarget(text string) (Target, error) {
	kind, address, _ := strings.Cut(text, ":")
	t := Target{Secure: strings.HasSuffix(kind, "tls") || strings.HasSuffix(kind, "ssl"), Passive: strings.HasPrefix(kind, "p")}
	known := slices.Contains([]string{"tcp", "tls", "ssl"}, strings.TrimPrefix(kind, "p"))
	if t.Passive {
		address = portLast(address)
	}
	t.Address = address
	host, port, err := net.SplitHostPort(address)
	if n, bad := strconv.ParseUint(port, 10, 16); !known || err != nil || bad != nil || !t.Passive && (host == "" || n == 0) {
		return t, fmt.Errorf("controller %q: write tcp:HOST:PORT or tls:HOST:PORT, or ptcp::PORT or ptls::PORT to listen", text)
	}
	return t, nil
}

// portLast puts a port that stands first behind its host.
func portLast(address string) string {
	port, host, _ := strings.Cut(address, ":")
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return address
	}
	if _, err := strconv.ParseUint(host, 10, 16); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// Run keeps up the connections of a target until ctx is done. conf is for TLS. It
// fails at once if it cannot listen; log gets why a connection ended.
func (h *Hub) Run(ctx context.Context, t Target, conf *tls.Config, log func(error)) error {
	if t.Passive {
		return h.listen(ctx, t, conf, log)
	}
	h.keep(ctx, func() {
		if err := h.dial(ctx, t, conf, log); err != nil && ctx.Err() == nil {
			h.note(t, err)
			log(fmt.Errorf("controller %s: %w", t.Address, err))
		}
	})
	return nil
}

// keep connects again and again until ctx is done, after waits that grow.
func (h *Hub) keep(ctx context.Context, connect func()) {
	for wait := firstRetry; ctx.Err() == nil; wait = min(2*wait, h.lastRetry()) {
		began, hurry := time.Now(), h.hurried()
		connect()
		if time.Since(began) > stable {
			wait = firstRetry
		}
		select {
		case <-ctx.Done():
		case <-hurry:
			wait = firstRetry / 2
		case <-time.After(wait):
		}
	}
}

// Hurry has controllers tried again at once, those of which a try goes on when that
// has failed.
func (h *Hub) Hurry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.hurry)
	h.hurry = make(chan struct{})
}

// hurried is closed by the next Hurry.
func (h *Hub) hurried() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hurry
}

func (h *Hub) lastRetry() time.Duration {
	if h.Near {
		return nearRetry
	}
	return lastRetry
}

func (h *Hub) dialLimit() time.Duration {
	if h.Near {
		return nearRetry
	}
	return dialLimit
}

// dial runs a connection, and when it stands the auxiliary ones beside it.
func (h *Hub) dial(ctx context.Context, t Target, conf *tls.Config, log func(error)) error {
	conn, err := t.Connect(ctx, conf, h.dialLimit())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := newConn(conn, h)
	c.target = t
	var beside sync.WaitGroup
	c.greeted = func() {
		for i := range h.Auxiliary {
			beside.Go(func() { h.auxiliary(ctx, t, conf, c, i+1, log) })
		}
	}
	defer beside.Wait()
	defer cancel()
	return h.serve(ctx, c)
}

// auxiliary keeps up an auxiliary connection as long as ctx, which is that of the
// main one, is not done.
func (h *Hub) auxiliary(ctx context.Context, t Target, conf *tls.Config, main *Conn, id uint8, log func(error)) {
	h.keep(ctx, func() {
		if err := h.dialBeside(ctx, t, conf, main, id); ctx.Err() == nil {
			log(fmt.Errorf("controller %s, auxiliary connection %d: %w", t.Address, id, err))
		}
	})
}

// dialBeside runs an auxiliary connection.
func (h *Hub) dialBeside(ctx context.Context, t Target, conf *tls.Config, main *Conn, id uint8) error {
	var conn net.Conn
	var err error
	if h.AuxiliaryUDP {
		conn, err = t.connectUDP(ctx)
	} else {
		conn, err = t.Connect(ctx, conf, h.dialLimit())
	}
	if err != nil {
		return err
	}
	c := newConn(conn, h)
	c.main, c.auxiliary = main, id
	return h.serve(ctx, c)
}

// Connect connects to a target that does not listen; conf is for TLS.
func (t Target) Connect(ctx context.Context, conf *tls.Config, limit time.Duration) (net.Conn, error) {
	dialer := net.Dialer{Timeout: limit}
	conn, err := dialer.DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return nil, err
	}
	if t.Secure {
		conf = conf.Clone()
		if conf.ServerName == "" {
			conf.ServerName, _, _ = net.SplitHostPort(t.Address)
		}
		conn = tls.Client(conn, conf)
	}
	return conn, nil
}

// serve runs a connection until it ends or ctx is done.
func (h *Hub) serve(ctx context.Context, c *Conn) error {
	defer context.AfterFunc(ctx, c.cut)()
	err := c.serve()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil {
		return c.why
	}
	return err
}

// Manage answers at a Unix socket, until ctx is done, who looks at the switch and
// is no controller: they count for none in Connected, and get no asynchronous
// messages unless they ask for them.
func (h *Hub) Manage(ctx context.Context, path string, log func(error)) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	return h.accept(ctx, l, log, func(conn net.Conn) error {
		c := newConn(conn, h)
		c.manages = true
		c.async.PacketIn, c.async.PortStatus, c.async.FlowRemove = [2]uint32{}, [2]uint32{}, [2]uint32{}
		defer context.AfterFunc(ctx, c.cut)()
		return c.serve()
	})
}

func (h *Hub) listen(ctx context.Context, t Target, conf *tls.Config, log func(error)) error {
	l, err := net.Listen("tcp", t.Address)
	if err != nil {
		return err
	}
	return h.accept(ctx, l, log, func(conn net.Conn) error {
		if t.Secure {
			conn = tls.Server(conn, conf)
		}
		c := newConn(conn, h)
		c.target = t
		return h.serve(ctx, c)
	})
}

// accept serves who connects, at most mostPassive at once, until ctx is done.
func (h *Hub) accept(ctx context.Context, l net.Listener, log func(error), serve func(net.Conn) error) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	places := make(chan struct{}, mostPassive)
	var accepted sync.WaitGroup
	defer accepted.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case places <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		accepted.Go(func() {
			defer func() { <-places }()
			if err := serve(conn); err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
				log(fmt.Errorf("controller %s: %w", conn.RemoteAddr(), err))
			}
		})
	}
}

// Close ends what waits to deliver a message.
func (h *Hub) Close() { close(h.done) }
