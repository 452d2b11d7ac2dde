package api

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// SocketName is the API's socket in the run directory.
const SocketName = "api.sock"

// connectionsPerUser bounds what one tenant may hold open; the operator's
// agents are not counted.
const connectionsPerUser = 1024

// Listen opens the API's unix socket in the run directory: everybody may
// connect, the kernel says who it is. A socket that a killed server left is
// replaced, one that a living server serves is not. What becomes of it later
// is logged; log may be nil.
func Listen(run string, log *slog.Logger) (net.Listener, error) {
	if err := os.MkdirAll(run, 0o755); err != nil {
		return nil, fmt.Errorf("make the run directory: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	path := filepath.Join(run, SocketName)
	if answers(path) {
		return nil, fmt.Errorf("listen on %s: another server answers there", path)
	}
	// A session takes two files more, and the store must keep some.
	l := &peerListener{path: path, log: log, most: files() / 4, stop: make(chan struct{}), open: make(map[uint32]int)}
	if err := l.listen(); err != nil {
		return nil, err
	}
	go l.watch()
	return l, nil
}

// answers says whether somebody serves the socket at path.
func answers(path string) bool {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// listen makes the socket at its path, in place of what is there.
func (l *peerListener) listen() error {
	if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", l.path, err)
	}
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: l.path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen for the API: %w", err)
	}
	socket.SetUnlinkOnClose(false) // it may be another's by then
	var at unix.Stat_t
	if err := errors.Join(os.Chmod(l.path, 0o666), unix.Lstat(l.path, &at)); err != nil {
		socket.Close()
		return fmt.Errorf("open %s to everybody: %w", l.path, err)
	}
	l.socket, l.inode, l.device = socket, at.Ino, at.Dev
	return nil
}

// peerListener accepts connections whose other end it can name, on a socket
// that it makes again when somebody took it away.
type peerListener struct {
	path string
	log  *slog.Logger
	most int // connections of all users but the operator
	stop chan struct{}

	mu     sync.Mutex
	socket *net.UnixListener
	inode  uint64 // of the socket's file,
	device uint64 // and where it is
	closed bool
	open   map[uint32]int // connections, by the user to whom they are charged
	users  int            // connections of all users but the operator
}

// peerConn is a unix connection with the user at its other end.
type peerConn struct {
	net.Conn
	uid     uint32
	release func()
}

// Accept drops callers that cannot be named or hold too much.
func (l *peerListener) Accept() (net.Conn, error) {
	for {
		socket := l.current()
		conn, err := socket.Accept()
		if err != nil && socket != l.current() {
			continue // it was made again
		}
		if err != nil {
			return nil, err
		}
		uid, err := peerOf(conn)
		account := subordinates.owner(uid)
		if err != nil || !l.take(account) {
			conn.Close()
			continue
		}
		return &peerConn{Conn: conn, uid: uid, release: sync.OnceFunc(func() { l.give(account) })}, nil
	}
}

func (l *peerListener) current() *net.UnixListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.socket
}

// Addr is the socket's.
func (l *peerListener) Addr() net.Addr { return l.current().Addr() }

// Close takes the socket away.
func (l *peerListener) Close() error {
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

// watchEvery is how long a socket that was taken away is missed at most.
const watchEvery = time.Second

// watch makes the socket again when it is not in its place any more.
func (l *peerListener) watch() {
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

func (l *peerListener) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.inPlace() || answers(l.path) {
		return
	}
	former := l.socket
	if err := l.listen(); err != nil {
		l.log.Error("the API's socket was taken away and cannot be made again", "err", err)
		return
	}
	l.log.Warn("the API's socket was taken away and is made again", "socket", l.path)
	former.Close()
}

// inPlace says whether the socket at the path is the one that is served.
func (l *peerListener) inPlace() bool {
	var at unix.Stat_t
	return unix.Lstat(l.path, &at) == nil && at.Ino == l.inode && at.Dev == l.device
}

func (l *peerListener) take(uid uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isOperator(uid) {
		if l.open[uid] >= min(connectionsPerUser, l.most/2) || l.users >= l.most {
			return false
		}
		l.users++
	}
	l.open[uid]++
	return true
}

func (l *peerListener) give(uid uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isOperator(uid) {
		l.users--
	}
	if l.open[uid]--; l.open[uid] == 0 {
		delete(l.open, uid)
	}
}

// Close gives the connection's place back, once.
func (c *peerConn) Close() error {
	c.release()
	return c.Conn.Close()
}

// linger is how long a caller may keep a session open that its agent has ended.
const linger = 5 * time.Second

// CloseWrite says that no more will be sent; sessions need it. The caller is
// given time to see that, and no more: a place in the server is not his to keep.
func (c *peerConn) CloseWrite() error {
	return errors.Join(c.Conn.(*net.UnixConn).CloseWrite(), c.SetReadDeadline(time.Now().Add(linger)))
}

// peerOf asks the kernel who connected (SO_PEERCRED).
func peerOf(conn net.Conn) (uint32, error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		credentials, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, fmt.Errorf("ask who connected: %w", err)
	}
	return credentials.Uid, nil
}
