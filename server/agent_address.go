package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"sublet/trust"
	"sublet/vnet"
)

// agentAddress checks where an agent says that it serves sessions, and returns
// the address it connects from if the server must use that: a host's
// certificate gives no right to point the server anywhere else.
func agentAddress(address string, r *http.Request, c trust.Caller) (from netip.Addr, err error) {
	if address == "" || c.Host == "" && strings.HasPrefix(address, "/") {
		return from, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Port() == "" || u.Path != "" || u.User != nil || u.RawQuery != "" {
		return from, &vnet.FieldError{Path: "agent", Problem: strconv.Quote(clip(address)) + " is not an address of an agent: state https://HOST:PORT, or on the server's machine a socket's path"}
	}
	if c.Host == "" {
		return from, nil
	}
	caller, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return from, fmt.Errorf("read the address of a caller: %w", err)
	}
	from = caller.Addr().Unmap()
	if stated, err := netip.ParseAddr(u.Hostname()); err == nil && !stated.IsUnspecified() && stated.Unmap() != from {
		return from, &vnet.FieldError{Path: "agent", Problem: fmt.Sprintf("%s is not where this agent connects from: listen on %s, or on a name of it", clip(address), from)}
	}
	if own, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && own.String() == net.JoinHostPort(from.String(), u.Port()) {
		return from, &vnet.FieldError{Path: "agent", Problem: clip(address) + " is the server itself: let the agent listen on a port of its own"}
	}
	return from, nil
}

// pin makes a transport connect to an address whatever host a URL names; the
// agent's certificate is still checked against that host, or against the
// address where the URL names none.
func pin(transport *http.Transport, target *url.URL, from netip.Addr) {
	at := net.JoinHostPort(from.String(), target.Port())
	if host, err := netip.ParseAddr(target.Hostname()); target.Hostname() == "" || err == nil && host.IsUnspecified() {
		target.Host = at
	}
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, at) }
}
