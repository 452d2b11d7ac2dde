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
	path string
	mode os.FileMode
	log  *slog.Logger
	stop chan struct{}

	mu     sync.Mutex
	socket *net.UnixListener
	inode  uint64 // of the socket's file,
	device uint64 // and where it is
	closed bool
}

// Listen makes a socket at path, with this mode, in the place of what is there:
// see Answers. What becomes of it later is logged; log may be nil.
func Listen(path string, mode os.FileMode, log *slog.Logger) (*Listener, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := &Listener{path: path, mode: mode, log: log, stop: make(chan struct{})}
	if err := l.listen(); err != nil {
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

// listen makes the socket at its path, in place of what is there.
func (l *Listener) listen() error {
	if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", l.path, err)
	}
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: l.path, Net: "unix"})
	if err != nil {
		return err
	}
	socket.SetUnlinkOnClose(false) // it may be another's by then
	var at unix.Stat_t
	if err := errors.Join(os.Chmod(l.path, l.mode), unix.Lstat(l.path, &at)); err != nil {
		socket.Close()
		return fmt.Errorf("open %s: %w", l.path, err)
	}
	l.socket, l.inode, l.device = socket, at.Ino, at.Dev
	return nil
}

// Accept waits for a connection, on the socket that is there by then.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		socket := l.current()
		conn, err := socket.Accept()
		if err != nil && socket != l.current() {
			continue // it was made again
		}
		return conn, err
	}
}

func (l *Listener) current() *net.UnixListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.socket
}

// Addr is the socket's.
func (l *Listener) Addr() net.Addr { return l.current().Addr() }

// Close takes the socket away.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	l.closed = true
	close(l.stop)
	if l.inPlace() {
		_ = os.Remove(l.path)
	}
	return l.socket.Close()
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
	if l.closed || l.inPlace() || Answers(l.path) {
		return
	}
	former := l.socket
	if err := l.listen(); err != nil {
		l.log.Error("a socket was taken away and cannot be made again", "socket", l.path, "err", err)
		return
	}
	l.log.Warn("a socket was taken away and is made again", "socket", l.path)
	former.Close()
}

// inPlace says whether the socket at the path is the one that is served.
func (l *Listener) inPlace() bool {
	var at unix.Stat_t
	return unix.Lstat(l.path, &at) == nil && at.Ino == l.inode && at.Dev == l.device
}
