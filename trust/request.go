package trust

import (
	"context"
	"net"
	"net/http"
)

type callerKey struct{}

// CallerOf says who sent a request: by the certificate shown, or by what the
// kernel said of the connection.
func CallerOf(r *http.Request) Caller {
	if r.TLS != nil {
		return remoteCaller(r.TLS)
	}
	c, _ := r.Context().Value(callerKey{}).(Caller)
	return c
}

// WithCaller finds out, once per connection, who is at the other end of a socket.
func WithCaller(ctx context.Context, conn net.Conn) context.Context {
	if conn, ok := conn.(*peerConn); ok {
		return context.WithValue(ctx, callerKey{}, localCaller(conn.uid))
	}
	return ctx
}

// OnlyOperator is a handler for agents: over TLS it admits the server, whose
// certificate is the operator's, and nobody else.
func OnlyOperator(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || !remoteCaller(r.TLS).Operator {
			http.Error(w, "this agent takes orders from its server only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
