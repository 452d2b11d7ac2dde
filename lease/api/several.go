package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Bounds of finding a server that answers among several.
const (
	dialOne    = time.Second            // connecting to one, with the handshake
	dialBeside = 200 * time.Millisecond // until the next one is dialled beside it
	askAlive   = time.Second            // how long one that has not answered has to say that it lives
	askEvery   = askAlive / 2           // and how often it is asked
	findWithin = 8 * time.Second        // one that leads
	findAgain  = 100 * time.Millisecond
)

// errNone: no server was reached, so none has seen anything of a request.
var errNone = errors.New("none of the servers can be reached")

// several are the servers of one store: any of them will do.
type several struct {
	addresses []string
	config    *tls.Config

	mu      sync.Mutex
	current int // index of the one that answered last
}

// dial connects to the server that answered last, or else to whichever of the others
// is first: one that stands still takes connections, and no handshake.
func (s *several) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	first := s.current
	s.mu.Unlock()
	type dialled struct {
		at   int
		conn net.Conn
		err  error
	}
	all := len(s.addresses)
	done := make(chan dialled, all)
	begun, over := 0, 0
	begin := func() {
		if begun == all {
			return
		}
		at := (first + begun) % all
		begun++
		go func() {
			conn, err := s.dialOne(ctx, s.addresses[at])
			done <- dialled{at, conn, err}
		}()
	}
	begin()
	beside := time.NewTicker(dialBeside)
	defer beside.Stop()
	var failed error
	for over < begun {
		select {
		case <-beside.C:
			begin()
		case one := <-done:
			over++
			if one.err == nil {
				s.turn(first, one.at)
				go func(rest int) {
					for range rest {
						if late := <-done; late.err == nil {
							late.conn.Close()
						}
					}
				}(begun - over)
				return one.conn, nil
			}
			failed = errors.Join(failed, one.err)
			begin()
		}
	}
	return nil, fmt.Errorf("%w: %w", errNone, failed)
}

func (s *several) dialOne(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialOne)
	defer cancel()
	return (&tls.Dialer{Config: s.config}).DialContext(ctx, "tcp", address)
}

// leave goes on to the next server, unless somebody did already.
func (s *several) leave(at int) { s.turn(at, (at+1)%len(s.addresses)) }

// turn goes on from one server to another one, unless somebody did already.
func (s *several) turn(from, to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == from {
		s.current = to
	}
}

// exchange sends a request until it is answered. What a server may have done is
// not asked for twice: only what changes nothing, what no server has seen, and what
// it says that it has not done, as nobody led.
func (c *Client) exchange(request *http.Request) (*http.Response, error) {
	if c.several == nil {
		return c.http.Do(request)
	}
	for until := time.Now().Add(findWithin); ; {
		c.several.mu.Lock()
		at := c.several.current
		c.several.mu.Unlock()
		response, err := c.attempt(request)
		if err == nil && response.StatusCode != http.StatusServiceUnavailable {
			return response, nil
		}
		if err != nil && request.Context().Err() == nil { // who asks next asks another one
			c.several.leave(at)
			c.http.CloseIdleConnections()
		}
		undone := request.Method == http.MethodGet || errors.Is(err, errNone)
		if response, undone, err = leaderlessly(response, undone, err); !undone || time.Now().After(until) || request.Context().Err() != nil {
			return response, err
		}
		if err == nil {
			c.several.leave(at)
			c.http.CloseIdleConnections()
		}
		if request, err = again(request); err != nil {
			return nil, err
		}
	}
}

// leaderlessly reads an answer of 503, and says whether nothing was done.
func leaderlessly(response *http.Response, undone bool, err error) (*http.Response, bool, error) {
	if err != nil {
		return nil, undone, err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	response.Body.Close()
	if err != nil {
		return nil, undone, err
	}
	var p *Problem
	undone = undone || errors.As(ReadProblem(response.StatusCode, string(text)), &p) && p.Type == TypeNoLeader
	response.Body = io.NopCloser(bytes.NewReader(text))
	return response, undone, nil
}

// again is a request to be sent once more, after a pause.
func again(request *http.Request) (*http.Request, error) {
	select {
	case <-request.Context().Done():
		return nil, request.Context().Err()
	case <-time.After(findAgain):
	}
	next := request.Clone(request.Context())
	switch {
	case request.GetBody == nil && request.Body != nil:
		return nil, errors.New("no server led, and what was to be sent may be used up: try again")
	case request.GetBody == nil:
		return next, nil
	}
	var err error
	next.Body, err = request.GetBody()
	return next, err
}

// attempt sends a request once. A server that knows no leader says so soon, as there
// are others to ask.
func (c *Client) attempt(request *http.Request) (*http.Response, error) {
	request.Header.Set("Prefer", fmt.Sprintf("wait=%d", askAlive/time.Second))
	return WhileAlive(request, c.http.Do)
}

// WhileAlive sends a request once. A server that does not answer is asked whether it
// lives: one that stands still, or that cannot send to us, would keep the caller for
// ever.
func WhileAlive(request *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	answered := make(chan struct{})
	go func() {
		for {
			select {
			case <-answered:
				return
			case <-ctx.Done():
				return
			case <-time.After(askEvery):
			}
			if err := alive(ctx, request.URL, send); err != nil {
				cancel(err)
				return
			}
		}
	}()
	response, err := send(request.WithContext(ctx))
	close(answered)
	if err != nil {
		defer cancel(nil)
		if request.Context().Err() == nil && ctx.Err() != nil {
			return nil, fmt.Errorf("the server stopped answering: %w", context.Cause(ctx))
		}
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols { // whose body is written, too
		response.Body = &cancelled{response.Body, cancel}
	}
	return response, nil
}

// alive asks the server of a request for a sign of life; any answer is one.
func alive(ctx context.Context, of *url.URL, send func(*http.Request) (*http.Response, error)) error {
	ctx, cancel := context.WithTimeout(ctx, askAlive)
	defer cancel()
	at := url.URL{Scheme: of.Scheme, Host: of.Host, Path: "/healthz"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	response, err := send(request)
	if err != nil {
		return fmt.Errorf("no sign of life from the server: %v", err)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, maxProblem))
	return errors.Join(err, response.Body.Close())
}

// cancelled is a body with whose end its request is over.
type cancelled struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *cancelled) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
