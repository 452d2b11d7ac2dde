// Package socket keeps Unix sockets at their paths: one that somebody took away
// is made again.
package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watchEvery is how long a socket that was taken away is missed at most.
const watchEvery = time.Second

// Listener is a net.Listener on a Unix socket.
type Listener struct {
	path  string
	mode  os.FileMode
	log   *slog.Logger
	stop  chan struct{}
	calls chan call // from all that are bound

	mu     sync.Mutex
	first  *bound // served to the end: its file may only be hidden, and come back
	second *bound // in its place meanwhile, or nil
	closed bool
}

// bound is a socket with its file.
type bound struct {
	*net.UnixListener
	inode, device uint64
}

// call is what Accept gives.
type call struct {
	conn net.Conn
	err  error
}

// Listen makes a socket at path, with this mode, in the place of what is there:
// see Answers. What becomes of it later is logged; log may be nil.
func Listen(path string, mode os.FileMode, log *slog.Logger) (*Listener, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := &Listener{path: path, mode: mode, log: log, stop: make(chan struct{}), calls: make(chan call)}
	var err error
	if l.first, err = l.bind(); err != nil {
		return nil, err
	}
	go l.watch()
	return l, nil
}

// Answers says whether somebody serves the socket at path.
func Answers(path string) bool {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// bind makes a socket at the path, in place of what is there, and serves it.
func (l *Listener) bind() (*bound, error) {
	if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("replace %s: %w", l.path, err)
	}
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: l.path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	socket.SetUnlinkOnClose(false) // it may be another's by then
	var at unix.Stat_t
	if err := errors.Join(os.Chmod(l.path, l.mode), unix.Lstat(l.path, &at)); err != nil {
		socket.Close()
		return nil, fmt.Errorf("open %s: %w", l.path, err)
	}
	b := &bound{socket, at.Ino, at.Dev}
	go l.serve(b)
	return b, nil
}

// serve passes on what b accepts, until it is closed.
func (l *Listener) serve(b *bound) {
	for {
		conn, err := b.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		select {
		case l.calls <- call{conn, err}:
		case <-l.stop:
			if conn != nil {
				conn.Close()
			}
			return
		}
	}
}

// Accept waits for a connection, on any socket that was there.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.calls:
		return c.conn, c.err
	case <-l.stop:
		return nil, net.ErrClosed
	}
}

// Addr is the socket's.
func (l *Listener) Addr() net.Addr { return l.first.Addr() }

// Close takes the socket away.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	l.closed = true
	close(l.stop)
	if l.inPlace(l.first) || l.inPlace(l.second) {
		_ = os.Remove(l.path)
	}
	return errors.Join(l.first.Close(), l.second.end())
}

func (b *bound) end() error {
	if b == nil {
		return nil
	}
	return b.Close()
}

// watch makes the socket again when it is not in its place any more.
func (l *Listener) watch() {
	for ticker := time.NewTicker(watchEvery); ; {
		select {
		case <-l.stop:
			ticker.Stop()
			return
		case <-ticker.C:
			l.restore()
		}
	}
}

func (l *Listener) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.inPlace(l.first) || l.inPlace(l.second) || Answers(l.path) {
		return
	}
	fresh, err := l.bind()
	if err != nil {
		l.log.Error("a socket was taken away and cannot be made again", "socket", l.path, "err", err)
		return
	}
	l.log.Warn("a socket was taken away and is made again", "socket", l.path)
	_ = l.second.end()
	l.second = fresh
}

// inPlace says whether the socket at the path is this one.
func (l *Listener) inPlace(b *bound) bool {
	var at unix.Stat_t
	return b != nil && unix.Lstat(l.path, &at) == nil && at.Ino == b.inode && at.Dev == b.device
}
