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
	"sync"
	"time"
)

// Bounds of finding a server that answers among several.
const (
	dialOne    = time.Second     // connecting to one, with the handshake
	askAlive   = time.Second     // how long one that has not answered has to say that it lives
	askEvery   = askAlive / 2    // and how often it is asked
	findWithin = 8 * time.Second // one that leads
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

// dial connects to the server that answered last, or else to another one.
func (s *several) dial(ctx context.Context) (net.Conn, error) {
	var failed error
	for range s.addresses {
		s.mu.Lock()
		at := s.current
		s.mu.Unlock()
		conn, err := s.dialOne(ctx, s.addresses[at])
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		failed = errors.Join(failed, err)
		s.leave(at)
	}
	return nil, fmt.Errorf("%w: %w", errNone, failed)
}

func (s *several) dialOne(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialOne)
	defer cancel()
	return (&tls.Dialer{Config: s.config}).DialContext(ctx, "tcp", address)
}

// leave goes on to the next server, unless somebody did already.
func (s *several) leave(at int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == at {
		s.current = (at + 1) % len(s.addresses)
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

// attempt sends a request once. A server that does not answer is asked whether it
// lives: one that stands still would keep the caller for ever.
func (c *Client) attempt(request *http.Request) (*http.Response, error) {
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
			if err := c.alive(ctx); err != nil {
				cancel(err)
				return
			}
		}
	}()
	response, err := c.http.Do(request.WithContext(ctx))
	close(answered)
	if err != nil {
		cancel(nil)
		if request.Context().Err() == nil && ctx.Err() != nil {
			return nil, fmt.Errorf("the server stopped answering: %w", context.Cause(ctx))
		}
		return nil, err
	}
	response.Body = &cancelled{response.Body, cancel}
	return response, nil
}

// alive asks the server that requests go to for a sign of life; any answer is one.
func (c *Client) alive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askAlive)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/healthz", nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
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
