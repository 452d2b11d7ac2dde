package trust

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"golang.org/x/sys/unix"
)

// unproven bounds the connections from which no request with a certificate
// has come yet: whoever reaches the port can open them. When there are too
// many, the oldest is closed: an honest handshake takes milliseconds.
type unproven struct {
	net.Listener
	most, mostOfAddress int

	mu        sync.Mutex
	open      *list.List // of *unprovenConn, oldest first
	ofAddress map[string]int
}

// unprovenConn is a connection that is closed when it must make place.
type unprovenConn struct {
	net.Conn
	leave func() // the list; more than once is once
}

// Bounds of connections, where the process may open files enough.
const (
	mostUnproven          = 512
	mostUnprovenOfAddress = 128
)

func newUnproven(l net.Listener) *unproven {
	most := min(mostUnproven, files()/8)
	return &unproven{Listener: l, most: most, mostOfAddress: min(mostUnprovenOfAddress, most/2),
		open: list.New(), ofAddress: make(map[string]int)}
}

// files is how many files this process may have open.
func files() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 1024 // the least that Linux distributions set
	}
	return int(min(limit.Cur, 1<<20))
}

// Accept closes the oldest connection of the caller's address, or of all, when
// there are too many.
func (u *unproven) Accept() (net.Conn, error) {
	conn, err := u.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &unprovenConn{Conn: conn}
	u.mu.Lock()
	address := addressOf(conn)
	surplus := u.surplus(address)
	place := u.open.PushBack(c)
	u.ofAddress[address]++
	c.leave = sync.OnceFunc(func() { u.forget(place, address) })
	u.mu.Unlock()
	if surplus != nil {
		surplus.Close()
	}
	return c, nil
}

// surplus is the connection that must make place for one from address, if any.
func (u *unproven) surplus(address string) *unprovenConn {
	if u.ofAddress[address] < u.mostOfAddress && u.open.Len() < u.most {
		return nil
	}
	for e := u.open.Front(); e != nil; e = e.Next() {
		c := e.Value.(*unprovenConn)
		if u.ofAddress[address] < u.mostOfAddress || addressOf(c) == address {
			return c
		}
	}
	return nil
}

func (u *unproven) forget(place *list.Element, address string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open.Remove(place)
	if u.ofAddress[address]--; u.ofAddress[address] == 0 {
		delete(u.ofAddress, address)
	}
}

// addressOf is the address at the other end, without the port.
func addressOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return host
}

// Close gives the connection's place to others.
func (c *unprovenConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// Proven is the ConnState of a server: a connection that sends a request has
// shown its certificate, and is not closed for others any more.
func Proven(conn net.Conn, state http.ConnState) {
	if conn, ok := conn.(*tls.Conn); ok && state == http.StateActive {
		if c, ok := conn.NetConn().(*unprovenConn); ok {
			c.leave()
		}
	}
}
