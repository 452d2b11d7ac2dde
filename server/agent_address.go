package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sublet/report"
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

// noServer refuses the address of a server that shares the store: the operator's
// certificate, which the server shows to agents, may do there what it likes. What
// an agent said before is not looked at again.
func (s *Server) noServer(ctx context.Context, told report.Report, from netip.Addr) error {
	s.mu.Lock()
	before := s.agents[told.Host]
	s.mu.Unlock()
	if s.cluster == nil || !from.IsValid() || before.from == from && before.report.Agent == told.Agent {
		return nil
	}
	u, err := url.Parse(told.Agent)
	if err != nil {
		return err
	}
	servers, err := s.cluster.Servers(ctx)
	if err != nil {
		return unavailable(err)
	}
	for _, one := range servers {
		if answersAt(ctx, one.Address, from, u.Port()) {
			return &vnet.FieldError{Path: "agent", Problem: clip(told.Agent) + " is the server " + one.Name + ": let the agent listen on a port of its own"}
		}
	}
	return nil
}

// answersAt says whether HOST:PORT is a port of an address. A name that is not
// found is none.
func answersAt(ctx context.Context, at string, address netip.Addr, port string) bool {
	host, its, err := net.SplitHostPort(at)
	if err != nil || its != port {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return slices.ContainsFunc(found, func(a netip.Addr) bool { return a.Unmap() == address })
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
