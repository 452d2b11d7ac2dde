package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"sublet/internal/problem"
	"sublet/lease/api"
	"sublet/trust"
)

// Page makes the page for who asks for it, of a client that calls as they do, and
// whether they only look. It parses a body of so many bytes between turn and done.
type Page func(c *api.Client, readOnly bool, turn func(bytes int) (done func())) http.Handler

// getPage answers what is no route of the API: the page's files, which are the
// same for everybody, and what its scripts ask for, as who asks.
func (s *Server) getPage(w http.ResponseWriter, r *http.Request) error {
	if err := sameOrigin(r); err != nil {
		return err
	}
	if s.page == nil || r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/") {
		return noRoute(r)
	}
	c := &call{}
	if strings.HasPrefix(r.URL.Path, "/page/") {
		caller, err := s.callerOf(r)
		if err != nil {
			return err
		}
		c.Caller = caller
		if err := s.visit(c, r); err != nil {
			return err
		}
		leave, err := s.limiter.enter(caller)
		if err != nil {
			return err
		}
		defer leave()
		received, err := s.receives(w, r, caller)
		if err != nil {
			return err
		}
		defer received()
	}
	client := api.NewClientOver("this server", func(ctx context.Context) (net.Conn, error) { return s.inner.dial(ctx, c.Caller) })
	defer client.Close()
	readOnly := c.Token != nil && c.Token.Scope != trust.ScopeWrite
	problem.Handler(s.page(client, readOnly, s.turn)).ServeHTTP(w, r)
	return nil
}

// receives bounds a body that the page reads as those of the API are, and the time
// to take the answer: received must be called after it. The bodies of other methods
// are not read.
func (s *Server) receives(w http.ResponseWriter, r *http.Request, c trust.Caller) (received func(), err error) {
	if r.Method != http.MethodPost {
		return func() {}, nil
	}
	control, by := http.NewResponseController(w), time.Now().Add(bodyTimeout)
	if err := errors.Join(control.SetReadDeadline(by), control.SetWriteDeadline(by.Add(answerTimeout))); err != nil {
		return nil, fmt.Errorf("bound the time of a body: %w", err)
	}
	return s.limiter.body(c)
}

// visit refuses who may not use the page. What its scripts do by it is a call of
// the API by the same caller, and is decided there.
func (s *Server) visit(c *call, r *http.Request) error {
	if err := known(r, c); err != nil {
		return err
	}
	return c.permit(trust.ForEveryone, "")
}

// inner is a listener for connections from within this process, each of a caller
// who is known already.
type inner struct {
	conns chan net.Conn
	done  chan struct{}
	close sync.Once
}

func newInner() *inner { return &inner{conns: make(chan net.Conn), done: make(chan struct{})} }

func (l *inner) dial(ctx context.Context, caller trust.Caller) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- trust.As(far, caller):
		return near, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept is a net.Listener's.
func (l *inner) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close is a net.Listener's.
func (l *inner) Close() error {
	l.close.Do(func() { close(l.done) })
	return nil
}

// Addr is a net.Listener's.
func (l *inner) Addr() net.Addr { return &net.UnixAddr{Name: "inner", Net: "unix"} }
