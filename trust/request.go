package trust

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"sublet/internal/problem"
	"sublet/vnet"
)

type (
	callerKey struct{}
	connKey   struct{} // of a connection with TLS
)

// CallerOf says who sent a request: by the certificate shown, or by what the
// kernel said of the connection.
func CallerOf(r *http.Request) Caller {
	if c, ok := r.Context().Value(statedKey{}).(Caller); ok {
		return c
	}
	if r.TLS != nil {
		return remoteCaller(r.TLS)
	}
	c, _ := r.Context().Value(callerKey{}).(Caller)
	return c
}

// WithCaller finds out, once per connection, who is at the other end of a socket.
func WithCaller(ctx context.Context, conn net.Conn) context.Context {
	switch conn := conn.(type) {
	case *peerConn:
		return context.WithValue(ctx, callerKey{}, localCaller(conn.uid))
	case *tls.Conn:
		return context.WithValue(ctx, connKey{}, conn)
	case *callerConn:
		return context.WithValue(ctx, callerKey{}, conn.caller)
	}
	return ctx
}

// callerConn is a connection of somebody who is known already.
type callerConn struct {
	net.Conn
	caller Caller
}

// As makes a connection one of a caller.
func As(conn net.Conn, caller Caller) net.Conn { return &callerConn{conn, caller} }

// Anonymous says that a request over TLS came without a certificate.
func Anonymous(r *http.Request) bool { return r.TLS != nil && len(r.TLS.VerifiedChains) == 0 }

// Vouch says that a request's connection is of somebody who is known by a token: it
// is counted for their account until it ends or sends another request, and not
// closed for others meanwhile. false: the account has too many.
func Vouch(r *http.Request, account vnet.TenantID) bool {
	conn, ok := r.Context().Value(connKey{}).(*tls.Conn)
	if !ok || !Anonymous(r) {
		return true // a user's, or of a certificate
	}
	c, ok := conn.NetConn().(*unprovenConn)
	return !ok || c.of.vouch(c, account)
}

// OnlyOperator is a handler for agents: over TLS it admits the server, whose
// certificate is the operator's, and nobody else.
func OnlyOperator(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || !remoteCaller(r.TLS).Operator {
			problem.Write(w, http.StatusForbidden, "this agent takes orders from its server only")
			return
		}
		next.ServeHTTP(w, r)
	})
}
