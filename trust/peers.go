package trust

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// connectionsPerUser bounds what one tenant may hold open; the operator's
// agents are not counted.
const connectionsPerUser = 1024

// NewPeers accepts connections of users whom the kernel can name, and bounds
// how many each may hold.
func NewPeers(l net.Listener) net.Listener {
	// A session takes two files more, and the store must keep some.
	return &peerListener{Listener: l, most: files() / 4, open: make(map[uint32]int)}
}

// peerListener accepts connections whose other end it can name.
type peerListener struct {
	net.Listener
	most int // connections of all users but the operator

	mu    sync.Mutex
	open  map[uint32]int // connections, by user
	users int            // connections of all users but the operator
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
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		uid, err := peerOf(conn)
		if err != nil || !l.take(uid) {
			conn.Close()
			continue
		}
		return &peerConn{Conn: conn, uid: uid, release: sync.OnceFunc(func() { l.give(uid) })}, nil
	}
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
// given time to see that, and no more: a place in the server is not theirs to keep.
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
