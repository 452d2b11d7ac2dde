package session

import (
	"errors"
	"io"
	"sync"
)

var errOverflow = errors.New("peer sent more than its credit")

// buffer is a bounded queue of bytes between two goroutines.
type buffer struct {
	mu    sync.Mutex
	moved sync.Cond // data, end or closed changed
	limit int
	data  []byte
	end   error // what the reader gets after data; nil while open
}

func newBuffer(limit int) *buffer {
	b := &buffer{limit: limit}
	b.moved.L = &b.mu
	return b
}

// offer appends p, or fails with errOverflow; it never waits.
func (b *buffer) offer(p []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.data)+len(p) > b.limit {
		return errOverflow
	}
	b.append(p)
	return nil
}

// put appends p as there is room; what is put after finish is dropped.
func (b *buffer) put(p []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(p) > 0 && b.end == nil {
		n := min(len(p), b.limit-len(b.data))
		if n == 0 {
			b.moved.Wait()
			continue
		}
		b.append(p[:n])
		p = p[n:]
	}
}

func (b *buffer) append(p []byte) {
	if b.end != nil {
		return
	}
	b.data = append(b.data, p...)
	b.moved.Broadcast()
}

// Read takes what there is, waiting for at least one byte or the end.
func (b *buffer) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.data) == 0 && b.end == nil {
		b.moved.Wait()
	}
	if len(b.data) == 0 {
		return 0, b.end
	}
	n := copy(p, b.data)
	b.data = append(b.data[:0], b.data[n:]...)
	b.moved.Broadcast()
	return n, nil
}

// finish makes readers end with err (io.EOF if nil) once the data is read. The
// first call counts.
func (b *buffer) finish(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end != nil {
		return
	}
	if b.end = err; err == nil {
		b.end = io.EOF
	}
	b.moved.Broadcast()
}

// discard finishes and drops what nobody will read.
func (b *buffer) discard() {
	b.finish(io.ErrClosedPipe)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = nil
}

// credit counts what may still be sent.
type credit struct {
	mu     sync.Mutex
	moved  sync.Cond
	n      int
	closed bool
}

func newCredit() *credit {
	c := &credit{n: stdinWindow}
	c.moved.L = &c.mu
	return c
}

// take waits for credit and takes at most want; 0 means closed.
func (c *credit) take(want int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.n == 0 && !c.closed {
		c.moved.Wait()
	}
	if c.closed {
		return 0
	}
	n := min(want, c.n)
	c.n -= n
	return n
}

// give returns credit; a peer that gives more than the window lies.
func (c *credit) give(n uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if uint64(c.n)+uint64(n) > stdinWindow {
		return errOverflow
	}
	c.n += int(n)
	c.moved.Broadcast()
	return nil
}

func (c *credit) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.moved.Broadcast()
}
