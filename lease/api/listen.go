package api

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
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
// replaced, one that a living server serves is not.
func Listen(run string) (net.Listener, error) {
	if err := os.MkdirAll(run, 0o755); err != nil {
		return nil, fmt.Errorf("make the run directory: %w", err)
	}
	path := filepath.Join(run, SocketName)
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		conn.Close()
		return nil, fmt.Errorf("listen on %s: another server answers there", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("replace %s: %w", path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for the API: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		l.Close()
		return nil, fmt.Errorf("open %s to everybody: %w", path, err)
	}
	return &peerListener{Listener: l, open: make(map[uint32]int)}, nil
}

// ListenTLS opens a TCP port for agents and operators elsewhere. Certificates
// of both sides are signed by ca; TLS 1.3 only, HTTP/1.1 only (sessions
// upgrade the connection).
func ListenTLS(address, certFile, keyFile, caFile string) (net.Listener, error) {
	config, err := TLSConfig(certFile, keyFile, caFile)
	if err != nil {
		return nil, err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the API: %w", err)
	}
	return tls.NewListener(l, config), nil
}

// TLSConfig reads a configuration good for both sides of a connection whose
// certificates are signed by ca.
func TLSConfig(certFile, keyFile, caFile string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read certificate %s and key %s: %w", certFile, keyFile, err)
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the authority's certificate: %s holds none", caFile)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, RootCAs: pool,
	}, nil
}

// peerListener accepts connections whose other end it can name.
type peerListener struct {
	net.Listener
	mu   sync.Mutex
	open map[uint32]int // connections, by user
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
	if l.open[uid] >= connectionsPerUser && uid != 0 && uid != uint32(os.Geteuid()) {
		return false
	}
	l.open[uid]++
	return true
}

func (l *peerListener) give(uid uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[uid]--; l.open[uid] == 0 {
		delete(l.open, uid)
	}
}

// Close gives the connection's place back, once.
func (c *peerConn) Close() error {
	c.release()
	return c.Conn.Close()
}

// CloseWrite says that no more will be sent; sessions need it.
func (c *peerConn) CloseWrite() error { return c.Conn.(*net.UnixConn).CloseWrite() }

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
