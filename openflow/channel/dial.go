package channel

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 8 * time.Second
	dialLimit  = 5 * time.Second
	stable     = 5 * time.Second // a connection that lasted so long starts the waits anew
)

// Target is where a controller is: tcp:HOST:PORT or tls:HOST:PORT to connect to,
// ptcp:[HOST]:PORT or ptls:[HOST]:PORT to listen at.
type Target struct {
	Secure, Passive bool
	Address         string // HOST:PORT
}

// ParseTarget reads one.
func ParseTarget(text string) (Target, error) {
	kind, address, _ := strings.Cut(text, ":")
	t := Target{Secure: strings.HasSuffix(kind, "tls"), Passive: strings.HasPrefix(kind, "p"), Address: address}
	known := kind == "tcp" || kind == "tls" || kind == "ptcp" || kind == "ptls"
	host, port, err := net.SplitHostPort(address)
	if !known || err != nil || port == "" || host == "" && !t.Passive {
		return t, fmt.Errorf("controller %q: write tcp:HOST:PORT or tls:HOST:PORT, or ptcp::PORT or ptls::PORT to listen", text)
	}
	return t, nil
}

// Run keeps up the connections of a target until ctx is done. conf is for TLS. It
// fails at once if it cannot listen; log gets why a connection ended.
func (h *Hub) Run(ctx context.Context, t Target, conf *tls.Config, log func(error)) error {
	if t.Passive {
		return h.listen(ctx, t, conf, log)
	}
	for wait := firstRetry; ctx.Err() == nil; wait = min(2*wait, lastRetry) {
		began := time.Now()
		if err := h.dial(ctx, t, conf); err != nil && ctx.Err() == nil {
			log(fmt.Errorf("controller %s: %w", t.Address, err))
		}
		if time.Since(began) > stable {
			wait = firstRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return nil
}

func (h *Hub) dial(ctx context.Context, t Target, conf *tls.Config) error {
	dialer := net.Dialer{Timeout: dialLimit}
	conn, err := dialer.DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return err
	}
	if t.Secure {
		conf = conf.Clone()
		if conf.ServerName == "" {
			conf.ServerName, _, _ = net.SplitHostPort(t.Address)
		}
		conn = tls.Client(conn, conf)
	}
	return h.serve(ctx, conn)
}

// serve runs a connection until it ends or ctx is done.
func (h *Hub) serve(ctx context.Context, conn net.Conn) error {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return newConn(conn, h).serve()
}

func (h *Hub) listen(ctx context.Context, t Target, conf *tls.Config, log func(error)) error {
	l, err := net.Listen("tcp", t.Address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
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
		if t.Secure {
			conn = tls.Server(conn, conf)
		}
		accepted.Go(func() {
			if err := h.serve(ctx, conn); err != nil && ctx.Err() == nil {
				log(fmt.Errorf("controller %s: %w", conn.RemoteAddr(), err))
			}
		})
	}
}

// Close ends what waits to deliver a message.
func (h *Hub) Close() { close(h.done) }
