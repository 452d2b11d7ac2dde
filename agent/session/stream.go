package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// ServeStream answers a request with a stream of bytes of unknown length, such
// as a capture. produce writes until it has no more, or until ctx ends because
// the client is gone; its error is shown to the client.
func ServeStream(w http.ResponseWriter, r *http.Request, produce func(ctx context.Context, w io.Writer) error) {
	f, err := accept(w, r)
	if err != nil {
		return // answered
	}
	ctx, cancel := context.WithCancel(r.Context())
	// The client has nothing to say: what it sends, or its end, ends it.
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = f.r.ReadByte()
		cancel()
		f.conn.Close()
	}()
	stop := context.AfterFunc(r.Context(), func() { f.conn.Close() })
	if err := produce(ctx, writerFunc(f.writeOut)); err != nil {
		f.fail(err)
	} else {
		_ = f.writeUint32(frameExit, 0) // fails only if the client is gone
	}
	f.closeWrite()
	<-gone
	stop()
}

// writeOut sends bytes of any number as frames.
func (f *framer) writeOut(p []byte) (sent int, err error) {
	for sent < len(p) {
		n := min(len(p)-sent, maxPayload)
		if err := f.write(frameStdout, p[sent:sent+n]); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

// Stream reads what ServeStream writes. Close ends it on both sides.
type Stream struct {
	framer *framer
	stop   func() bool
	rest   []byte
	end    error
}

// OpenStream asks for a stream by GET path on a fresh connection, which it
// owns. A context that ends closes it.
func OpenStream(ctx context.Context, conn net.Conn, path string) (*Stream, error) {
	f, stop, err := upgrade(ctx, conn, http.MethodGet, path)
	if err != nil {
		return nil, err
	}
	return &Stream{framer: f, stop: stop}, nil
}

// Read returns io.EOF at the stream's proper end, a *Failure if the server
// reports one, and another error if the stream broke off.
func (s *Stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 && s.end == nil {
		s.rest, s.end = s.next()
	}
	if len(s.rest) == 0 {
		return 0, s.end
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *Stream) next() ([]byte, error) {
	t, payload, err := s.framer.read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("stream broke off: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return nil, err
	case t == frameStdout:
		return payload, nil
	case t == frameExit:
		return nil, io.EOF
	case t == frameFailure:
		return nil, &Failure{Message: string(payload[:min(len(payload), maxMessage)])}
	}
	return nil, unexpected(t)
}

// Close ends the stream; a Read in another goroutine returns.
func (s *Stream) Close() error {
	s.stop()
	return s.framer.conn.Close()
}
