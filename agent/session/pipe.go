package session

import (
	"context"
	"net"
	"sync"
)

// Pipe is a command whose standard input is written and whose standard output
// is read by the program that started it. Read and Write may be called
// concurrently. It must be closed.
type Pipe struct {
	client *client
	output *buffer
	errors tail
	done   chan struct{} // closed when receive ended
	exit   int
	err    error
}

// OpenPipe starts a command by POST path on a fresh connection, which it owns.
// A context that ends breaks the session off, which kills the command.
func OpenPipe(ctx context.Context, conn net.Conn, path string, spec Spec) (*Pipe, error) {
	c, err := open(ctx, conn, path, spec)
	if err != nil {
		return nil, err
	}
	p := &Pipe{client: c, output: newBuffer(stdinWindow), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.exit, p.err = c.receive(writerFunc(p.deliver), &p.errors)
		p.err = cause(ctx, p.err)
		c.close()
		p.output.finish(p.err)
	}()
	return p, nil
}

func (p *Pipe) deliver(data []byte) (int, error) {
	p.output.put(data)
	return len(data), nil
}

// Read takes the command's standard output; io.EOF once it has ended.
func (p *Pipe) Read(data []byte) (int, error) { return p.output.Read(data) }

// Write feeds the command's standard input.
func (p *Pipe) Write(data []byte) (int, error) { return p.client.send(data) }

// Resize tells a command on a terminal how large that is.
func (p *Pipe) Resize(rows, cols int) error { return p.client.resize(rows, cols) }

// CloseWrite ends the command's standard input.
func (p *Pipe) CloseWrite() error { return p.client.endInput() }

// Close breaks the session off, which kills a command that still runs.
func (p *Pipe) Close() error {
	p.client.close()
	p.output.discard()
	<-p.done
	return nil
}

// Wait returns the command's exit code (128 + number for a signal) once it has
// ended and its output has been taken in; what Read has not fetched stays
// readable. More unread output than the pipe holds (256 KiB) keeps Wait waiting.
func (p *Pipe) Wait() (exit int, err error) {
	<-p.done
	return p.exit, p.err
}

// Stderr is the end (16 KiB) of what the command said on standard error.
func (p *Pipe) Stderr() string { return p.errors.String() }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// tail keeps the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
