package channel

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/openflow/of13"
)

// sendBuffer is what the kernel holds of answers: statistics of 10,000 entries at once.
const sendBuffer = 2 << 20

// roomyMost is how many connections have so much: it counts as the process's memory.
const roomyMost = 4

// hasRoom says whether one more connection may have that.
func (h *Hub) hasRoom() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watched) < roomyMost
}

// hand gives a connection to the driver, unless it is encrypted.
func (c *Conn) hand(r *bufio.Reader, writer *sync.WaitGroup) {
	plain, ok := c.net.(syscall.Conn)
	if !ok {
		return
	}
	fd := duplicate(plain)
	if fd < 0 {
		return
	}
	if c.hub.hasRoom() {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer) // without the right to it answers wait more often
	}
	c.mu.Lock()
	c.handed = true
	c.mu.Unlock()
	c.wake.Broadcast()
	writer.Wait()
	d := &direct{fd: fd, in: make([]byte, 0, of13.MaxLen+1), readable: true, heard: time.Now(), over: make(chan error, 1), gone: make(chan struct{})}
	come, _ := r.Peek(r.Buffered())
	d.in = append(d.in, come...)
	c.mu.Lock()
	if c.direct = d; c.ending {
		c.shutdown()
	}
	c.mu.Unlock()
	c.net.Close() // Go's own poller forgets it; the descriptor made above is of the same connection
}

func duplicate(conn syscall.Conn) (fd int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1
	}
	fd = -1
	if err := raw.Control(func(original uintptr) {
		if fd, err = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0); err != nil {
			fd = -1
		}
	}); err != nil {
		return -1
	}
	return fd
}

// watched waits while the driver reads.
func (c *Conn) watched() error {
	fd := c.enlist()
	if err := c.hub.Watch(fd); err != nil {
		c.cut()
		return fmt.Errorf("watch a connection: %w", err)
	}
	select {
	case err := <-c.over:
		return err
	case <-c.hub.done:
		return net.ErrClosed
	}
}

// enlist has the driver find the connection by its descriptor; -1: it has ended.
func (c *Conn) enlist() int {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd >= 0 {
		c.hub.watched[c.fd] = c
	}
	return c.fd
}

// written waits until the driver has written what waits, or there is none any more.
func (c *Conn) written() {
	if c.direct == nil {
		return
	}
	select {
	case <-c.gone:
	case <-c.hub.done:
	case <-time.After(2 * unanswered): // the driver gives up before
	}
	c.close()
}

func (c *Conn) shutdown() {
	if c.fd >= 0 {
		_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	}
}

// close lets go of the descriptor.
func (c *Conn) close() {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd < 0 {
		return
	}
	delete(c.hub.watched, c.fd)
	unix.Close(c.fd)
	c.fd, c.out, c.sending, c.buffer = -1, lanes{}, nil, nil // and so what was read before is done
	c.count()
	close(c.gone)
	c.hub.notify()
}
