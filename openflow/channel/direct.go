package channel

import (
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"sublet/openflow/of13"
)

// WatchEvents are what a descriptor is watched for.
const WatchEvents = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

// direct is what a connection has that is read and written by whoever drives the
// switch: no message waits for another thread. in, at, readable, full, heard, asked,
// sending and stuck are the driver's own.
type direct struct {
	fd       int // -1: closed
	in       []byte
	at       int // what is before it has been taken
	readable bool
	hungUp   bool // what can be read ends
	full     bool // nothing is taken until replies have gone
	heard    time.Time
	asked    bool // for an echo, since then
	buffer   []byte
	sending  []byte    // what of buffer is not written yet
	stuck    time.Time // since when sending does not go on; zero: it does
	touched  bool      // in Hub.touched
	known    bool      // it was looked at
	ended    bool      // nothing more is read
	over     chan error
	gone     chan struct{} // closed with the descriptor
}

// Ready takes note of what came of a descriptor that is watched.
func (h *Hub) Ready(fd int, events uint32) {
	h.mu.Lock()
	c := h.watched[fd]
	h.mu.Unlock()
	if c == nil {
		return
	}
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.readable = true
	}
	if events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.hungUp = true
	}
	if events&unix.EPOLLOUT != 0 && len(c.sending) > 0 {
		h.touch(c)
	}
}

// look gives the next message; ended says that none will come.
func (c *Conn) look() (raw []byte, ended bool) {
	if !c.known {
		c.known = true
		c.hub.touch(c) // what its own writer has left
	}
	for {
		if c.crowded() {
			return nil, false
		}
		raw, err := c.whole()
		switch {
		case err != nil:
			c.finish(err)
		case raw != nil:
			return raw, false
		}
		if c.ended || !c.readable {
			return nil, c.ended
		}
		if err := c.fill(); err != nil {
			c.finish(err)
		}
	}
}

// whole takes a message off what was read; nil: none has come whole.
func (c *Conn) whole() ([]byte, error) {
	rest := c.in[c.at:]
	if len(rest) < of13.HeaderLen {
		return nil, nil
	}
	n := int(of13.ReadHeader(rest).Length)
	if n < of13.HeaderLen {
		c.at = len(c.in)
		c.refuse(rest[:of13.HeaderLen], of13.BadRequestBadLen)
		return nil, fmt.Errorf("a message of %d bytes: %w", n, of13.BadRequestBadLen)
	}
	if n > len(rest) {
		return nil, nil
	}
	c.at += n
	return rest[:n:n], nil
}

// fill reads once. What is read behind less than there was room for comes with
// another event.
func (c *Conn) fill() error {
	c.in = c.in[:copy(c.in[:cap(c.in)], c.in[c.at:])]
	c.at = 0
	room := c.in[len(c.in):cap(c.in)]
	n, err := unix.Read(c.fd, room)
	switch {
	case errors.Is(err, unix.EINTR):
		return nil
	case errors.Is(err, unix.EAGAIN):
		c.readable = false
		return nil
	case err != nil:
		return err
	case n == 0:
		return io.EOF
	}
	if n < len(room) && !c.hungUp {
		c.readable = false
	}
	c.in = c.in[:len(c.in)+n]
	c.heard, c.asked = time.Now(), false
	return nil
}

// crowded says whether the controller is to read replies before it is read from.
func (c *Conn) crowded() bool {
	c.full = c.fd >= 0 && len(c.sending)+c.out.replies() > mostReply
	return c.full
}

// finish ends reading. The connection ends when what waits is written.
func (c *Conn) finish(err error) {
	if c.ended {
		return
	}
	c.ended = true
	c.over <- err
	c.hub.touch(c)
}

func (h *Hub) touch(c *Conn) {
	if !c.touched {
		c.touched = true
		h.touched = append(h.touched, c)
	}
}

// Flush writes what was replied and told since the last time. It comes before the
// driver waits.
func (h *Hub) Flush() {
	for i := 0; i < len(h.touched); i++ {
		c := h.touched[i]
		c.touched = false
		c.flush()
	}
	clear(h.touched)
	h.touched = h.touched[:0]
}

func (c *Conn) flush() {
	if c.fd < 0 {
		c.forget()
		return
	}
	done, err := c.drain()
	c.mu.Lock()
	c.count()
	c.mu.Unlock()
	if err != nil {
		c.finish(err)
	}
	if c.ended && (done || err != nil) {
		c.close()
		return
	}
	if c.full && !c.crowded() {
		c.hub.notify()
	}
}

// drain writes until all is written, or there is no room.
func (c *Conn) drain() (done bool, err error) {
	for {
		if len(c.sending) == 0 {
			c.buffer = c.out.take(c.buffer[:0])
			c.sending = c.buffer
		}
		if len(c.sending) == 0 {
			return true, nil
		}
		n, err := unix.Write(c.fd, c.sending)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			if c.stuck.IsZero() {
				c.stuck = time.Now()
			}
			return false, nil
		case err != nil:
			return false, err
		}
		c.stuck = time.Time{}
		c.sending = c.sending[n:]
	}
}

// Tick looks for controllers that are silent, or do not read. It comes several
// times a second.
func (h *Hub) Tick(now time.Time) {
	h.mu.Lock()
	list := make([]*Conn, 0, len(h.watched))
	for _, c := range h.watched {
		list = append(list, c)
	}
	h.mu.Unlock()
	for _, c := range list {
		c.tick(now)
	}
}

func (c *Conn) tick(now time.Time) {
	silent := now.Sub(c.heard)
	switch {
	case !c.stuck.IsZero() && now.Sub(c.stuck) > unanswered:
		c.finish(unix.ETIMEDOUT)
		c.close()
	case c.ended || c.full:
	case silent > idle+unanswered:
		c.finish(unix.ETIMEDOUT)
	case silent > idle && !c.asked:
		c.asked = true
		c.reply(0, &of13.Echo{})
	}
}
