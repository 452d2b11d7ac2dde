package trust

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"golang.org/x/sys/unix"

	"sublet/vnet"
)

// unproven bounds the connections from which no request with a certificate
// has come yet: whoever reaches the port can open them. When there are too
// many, the oldest is closed: an honest handshake takes milliseconds. Those whose
// last request had a token are counted for its account.
type unproven struct {
	net.Listener
	most, mostOfAddress, mostVouched int

	mu        sync.Mutex
	open      *list.List // of *unprovenConn, oldest first
	ofAddress map[string]int
	ofAccount map[vnet.TenantID]int // vouched ones
	vouched   int                   // of all accounts
}

// unprovenConn is a connection that is closed when it must make place.
type unprovenConn struct {
	net.Conn
	of      *unproven
	address string

	// Under the lock of.mu.
	place   *list.Element // in open; nil: it is known who calls, or closed
	vouched bool
	account vnet.TenantID // of vouched ones
	closed  bool
}

// Bounds of connections, where the process may open files enough.
const (
	mostUnproven          = 512
	mostUnprovenOfAddress = 128
)

// newUnproven leaves most of the files to the socket, to sessions and to the store.
func newUnproven(l net.Listener) *unproven {
	most := min(mostUnproven, files()/8)
	return &unproven{Listener: l, most: most, mostOfAddress: min(mostUnprovenOfAddress, most/2), mostVouched: files() / 8,
		open: list.New(), ofAddress: make(map[string]int), ofAccount: make(map[vnet.TenantID]int)}
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
	c := &unprovenConn{Conn: conn, of: u, address: addressOf(conn)}
	u.doubt(c)
	return c, nil
}

// doubt puts a connection among those of which nobody knows who calls.
func (u *unproven) doubt(c *unprovenConn) {
	u.mu.Lock()
	if c.closed || c.place != nil {
		u.mu.Unlock()
		return
	}
	u.forget(c)
	surplus := u.surplus(c.address)
	c.place = u.open.PushBack(c)
	u.ofAddress[c.address]++
	u.mu.Unlock()
	if surplus != nil {
		surplus.Close()
	}
}

// vouch counts a connection for an account; false: that has too many, or all have.
func (u *unproven) vouch(c *unprovenConn, account vnet.TenantID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c.closed || c.vouched {
		return true
	}
	if u.ofAccount[account] >= min(connectionsPerUser, u.mostVouched/2) || u.vouched >= u.mostVouched {
		return false
	}
	u.forget(c)
	c.vouched, c.account = true, account
	u.ofAccount[account]++
	u.vouched++
	return true
}

// surplus is the connection that must make place for one from address, if any.
func (u *unproven) surplus(address string) *unprovenConn {
	if u.ofAddress[address] < u.mostOfAddress && u.open.Len() < u.most {
		return nil
	}
	for e := u.open.Front(); e != nil; e = e.Next() {
		c := e.Value.(*unprovenConn)
		if u.ofAddress[address] < u.mostOfAddress || c.address == address {
			return c
		}
	}
	return nil
}

// forget counts a connection nowhere.
func (u *unproven) forget(c *unprovenConn) {
	if c.place != nil {
		u.open.Remove(c.place)
		c.place = nil
		if u.ofAddress[c.address]--; u.ofAddress[c.address] == 0 {
			delete(u.ofAddress, c.address)
		}
	}
	if c.vouched {
		c.vouched = false
		u.vouched--
		if u.ofAccount[c.account]--; u.ofAccount[c.account] == 0 {
			delete(u.ofAccount, c.account)
		}
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
	c.of.mu.Lock()
	c.closed = true
	c.of.forget(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// prove counts a connection for nobody any more.
func (c *unprovenConn) prove() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.forget(c)
}

// Proven is the ConnState of a server: a connection that sends a request with a
// certificate is not closed for others any more. Without one each request must
// have a token anew: a token that was revoked keeps no place.
func Proven(conn net.Conn, state http.ConnState) {
	secure, ok := conn.(*tls.Conn)
	if !ok || state != http.StateActive {
		return
	}
	c, ok := secure.NetConn().(*unprovenConn)
	switch {
	case !ok:
	case len(secure.ConnectionState().VerifiedChains) > 0:
		c.prove()
	default:
		c.of.doubt(c)
	}
}
