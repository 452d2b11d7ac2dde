package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sublet/trust"
)

// Errors a client can tell apart with errors.Is. Bad input is a
// *vnet.FieldError, a refusal by admission a *vnet.Rejection; anything else
// the server says is a *Problem.
var (
	ErrNotFound    = errors.New("not found") // also: another tenant's
	ErrConflict    = errors.New("conflict")  // such as a network's name in use
	ErrForbidden   = errors.New("not allowed")
	ErrUnreachable = errors.New("no server")
)

// Client calls a server. It is safe for concurrent use.
type Client struct {
	at   string // for people
	base string
	http *http.Client
	dial func(context.Context) (net.Conn, error)

	several *several // nil: there is one server
	token   string   // "": the connection says who calls
}

// maxAnswer bounds an answer in bytes: a thousand leases of a thousand nodes.
const maxAnswer = 1 << 30

// maxProblem bounds an answer that is none, in bytes.
const maxProblem = 8 << 20

// idleTimeout of connections; a server drops them later.
const idleTimeout = time.Minute

// NewClient calls the server on a unix socket; nothing happens until the
// first call.
func NewClient(socket string) *Client {
	dialer := &net.Dialer{}
	return NewClientOver(socket, func(ctx context.Context) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", socket)
	})
}

// NewClientOver calls a server over connections of the caller's making; at is
// what errors call the server.
func NewClientOver(at string, dial func(context.Context) (net.Conn, error)) *Client {
	return newClient(at, "http://sublet", dial)
}

// NewTLSClient calls a server elsewhere, at host:port, or whichever answers of
// several that share a store, at HOST:PORT,HOST:PORT, with a certificate
// whose common name is "operator" or a host's name.
func NewTLSClient(address, certFile, keyFile, caFile string) (*Client, error) {
	config, err := trust.TLSConfig(certFile, keyFile, caFile)
	if err != nil {
		return nil, err
	}
	return newTLSClient(address, config)
}

// NewBearerClient is NewTLSClient for who has a token and no certificate.
func NewBearerClient(address, token, caFile string) (*Client, error) {
	config, err := trust.BearerTLSConfig(caFile)
	if err != nil {
		return nil, err
	}
	c, err := newTLSClient(address, config)
	if err != nil {
		return nil, err
	}
	return c.WithToken(token), nil
}

func newTLSClient(address string, config *tls.Config) (*Client, error) {
	s := &several{addresses: strings.Split(address, ","), config: config}
	if len(s.addresses) > 1 {
		for _, one := range s.addresses {
			if _, _, err := net.SplitHostPort(one); err != nil {
				return nil, fmt.Errorf("server %q is not HOST:PORT: several are separated by commas, without spaces", one)
			}
		}
		c := newClient(address, "http://"+s.addresses[0], s.dial)
		c.several = s
		return c, nil
	}
	dialer := &tls.Dialer{Config: config}
	return newClient(address, "http://"+address, func(ctx context.Context) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", address)
	}), nil
}

func newClient(at, base string, dial func(context.Context) (net.Conn, error)) *Client {
	transport := &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		MaxIdleConnsPerHost: 4, IdleConnTimeout: idleTimeout,
	}
	return &Client{at: at, base: base, dial: dial, http: &http.Client{Transport: transport}}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// do sends body as JSON, if there is one, and reads the answer into result.
func (c *Client) do(ctx context.Context, method, path string, body, result any) error {
	_, err := c.ask(ctx, method, path, body, result)
	return err
}

// ask is do that returns the answer's header, too.
func (c *Client) ask(ctx context.Context, method, path string, body, result any) (http.Header, error) {
	request, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	return c.send(request, result)
}

// send reads the answer to a request into result, and returns its header.
func (c *Client) send(request *http.Request, result any) (http.Header, error) {
	response, err := c.exchange(request)
	if err != nil {
		return nil, c.explain(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return nil, readProblem(response)
	}
	if result == nil {
		return response.Header, nil
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(result); err != nil {
		return nil, fmt.Errorf("read the server's answer to %s %s: %w", request.Method, request.URL.Path, err)
	}
	return response.Header, nil
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", method, path, err)
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return nil, fmt.Errorf("make request %s %s: %w", method, path, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", bearer+c.token)
	}
	return request, nil
}

// explain says what to do when there is no server.
func (c *Client) explain(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return &kindError{kind: context.Canceled, detail: "interrupted"}
	case errors.Is(err, context.DeadlineExceeded):
		return &kindError{kind: context.DeadlineExceeded, detail: "the time for it is over"}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return &kindError{kind: ErrUnreachable,
			detail: fmt.Sprintf("no server at %s: start one with `sublet serve` or `sublet lab up`", c.at)}
	case errors.Is(err, fs.ErrPermission):
		return &kindError{kind: ErrUnreachable, detail: fmt.Sprintf("no permission to reach the server at %s: open %s to this user", c.at, filepath.Dir(c.at))}
	}
	var call *url.Error // speaks of a URL that nobody typed
	if errors.As(err, &call) {
		err = call.Err
	}
	return fmt.Errorf("call the server at %s: %w", c.at, err)
}

// BaseURL is where the routes of the API begin, for RoundTrip.
func (c *Client) BaseURL() *url.URL {
	base, _ := url.Parse(c.base) // made by newClient's callers from a host and a port
	return base
}

// RoundTrip sends a request of somebody else's making as it is; errors say what
// to do when there is no server.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", bearer+c.token)
	}
	response, err := c.http.Transport.RoundTrip(r)
	if err != nil {
		return nil, c.explain(err)
	}
	return response, nil
}

// Dial opens a connection to the server for a session, which does its own
// HTTP upgrade on it: package agent/session, with NodePath or CapturePath.
func (c *Client) Dial(ctx context.Context) (net.Conn, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, c.explain(err)
	}
	if c.token != "" {
		return bearerConn{conn, bearer + c.token}, nil
	}
	return conn, nil
}

// readProblem turns an answer of 300 and more into an error.
func readProblem(response *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	if err != nil {
		return fmt.Errorf("read the server's problem: %w", err)
	}
	return ReadProblem(response.StatusCode, string(text))
}

// ReadProblem is the error that an answer of the API stands for: what the
// methods of Client return, for those who read the answer themselves.
func ReadProblem(status int, body string) error {
	p := Problem{Status: status}
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Type == "" {
		return &Problem{Status: status, Detail: fmt.Sprintf("%s (HTTP status %d)", strings.TrimSpace(body), status)}
	}
	return p.asError()
}

// SocketName is the API's socket in the run directory.
const SocketName = "api.sock"
