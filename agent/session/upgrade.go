package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"sublet/internal/problem"
)

// Failure is the server's own account of why a session did not begin or ended
// early.
type Failure struct {
	Status  int    // of HTTP; 0 when the connection was upgraded before
	Message string // as sent: text, or the API's JSON when Status is set
}

func (f *Failure) Error() string {
	if f.Status == 0 {
		return f.Message
	}
	return fmt.Sprintf("%s (HTTP status %d)", f.Message, f.Status)
}

// maxMessage bounds the text of a failure.
const maxMessage = 4 << 10

// linger is how long a closing server waits for the client to close too, so
// that the last frames are not lost to a reset.
const linger = 5 * time.Second

// upgrade asks for the protocol on a fresh connection, which it owns from then
// on: ctx ends it. stop releases ctx.
func upgrade(ctx context.Context, conn net.Conn, method, path string) (f *framer, stop func() bool, err error) {
	stop = context.AfterFunc(ctx, func() { conn.Close() })
	f, err = handshake(conn, method, path)
	if err != nil {
		stop()
		conn.Close()
		return nil, nil, cause(ctx, err)
	}
	return f, stop, nil
}

func handshake(conn net.Conn, method, path string) (*framer, error) {
	req, err := http.NewRequest(method, "http://sublet"+path, nil)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", path, err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", Protocol)
	if by, ok := conn.(interface{ Authorization() string }); ok {
		req.Header.Set("Authorization", by.Authorization())
	}
	if err := req.Write(conn); err != nil {
		return nil, fmt.Errorf("open session %s: %w", path, err)
	}
	r := bufio.NewReaderSize(conn, chunk)
	res, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", path, err)
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		return nil, refusal(res)
	}
	return newFramer(conn, r), nil
}

func refusal(res *http.Response) error {
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxMessage))
	return &Failure{Status: res.StatusCode, Message: strings.TrimSpace(string(text))}
}

// cause prefers the reason of a cancelled context over what it broke.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// accept answers an upgrade request and takes the connection over. When it
// fails it has answered.
func accept(w http.ResponseWriter, r *http.Request) (*framer, error) {
	if websocket.IsWebSocketUpgrade(r) {
		return acceptSocket(w, r)
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), Protocol) {
		w.Header().Set("Upgrade", Protocol)
		problem.Write(w, http.StatusUpgradeRequired, "this address speaks "+Protocol+" or WebSocket: ask for one with an Upgrade header")
		return nil, errors.New("accept session: no upgrade requested")
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		problem.Write(w, http.StatusInternalServerError, "this connection cannot be upgraded")
		return nil, fmt.Errorf("accept session: %w", err)
	}
	// The server's timeouts were for HTTP.
	err = conn.SetDeadline(time.Time{})
	if err == nil {
		_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+Protocol+"\r\n\r\n")
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("accept session: %w", err)
	}
	return newFramer(conn, rw.Reader), nil
}

// fail sends the last frame of a session that went wrong.
func (f *framer) fail(err error) {
	text := err.Error()
	// An error here is a client that is gone: there is nobody to tell.
	_ = f.write(frameFailure, []byte(text[:min(len(text), maxMessage)]))
}

// closeWrite says that no frame follows; the peer's reader sees the end.
func (f *framer) closeWrite() {
	if c, ok := f.conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
	}
	_ = f.conn.SetReadDeadline(time.Now().Add(linger))
}
