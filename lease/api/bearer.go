package api

import "net"

// bearer begins the header by which a token is shown (RFC 6750, section 2.1).
const bearer = "Bearer "

// WithToken calls as the tenant that a token stands for, whoever the connection is
// of. It is called before anything else of the client is.
func (c *Client) WithToken(token string) *Client {
	c.token = token
	return c
}

// bearerConn is a connection for a session by a token.
type bearerConn struct {
	net.Conn
	authorization string
}

// Authorization is the header that package agent/session asks with.
func (c bearerConn) Authorization() string { return c.authorization }

// CloseWrite says that nothing follows.
func (c bearerConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
