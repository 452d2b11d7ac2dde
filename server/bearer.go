package server

import (
	"net/http"
	"strings"

	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

// callerOf says who sent a request: a token, where there is one, stands for its
// tenant alone, whoever sends it.
func (s *Server) callerOf(r *http.Request) (trust.Caller, error) {
	text := trust.BearerOf(r.Header)
	if text == "" {
		return trust.CallerOf(r), nil
	}
	if s.tokens != nil {
		if c, ok := s.tokens.CallerOf(text); ok {
			if !trust.Vouch(r, c.Account) {
				return trust.Caller{}, tooMany("%s has as many connections open as it may", c.Account)
			}
			return c, nil
		}
	}
	return trust.Caller{}, unauthorized("this token is unknown, revoked or has expired: make another one with sublet token create")
}

func unauthorized(detail string) error {
	return &api.Problem{Status: http.StatusUnauthorized, Detail: detail}
}

// known refuses who is nobody: over TLS without a certificate.
func known(r *http.Request, c *call) error {
	if c.Token == nil && trust.Anonymous(r) {
		return unauthorized("who calls? Show a certificate, or send Authorization: Bearer with a token (sublet token create)")
	}
	return nil
}

// ofAllNetworks are routes that a token for some networks may use, beside those
// of its networks: what they answer is none of others', or leaves it out.
var ofAllNetworks = map[string]bool{
	"/v1/leases": true, "/v1/waiting": true, "/v1/openapi.yaml": true, "/healthz": true, "/readyz": true,
}

// granted refuses what a token is not for.
func (c *call) granted(rt route, r *http.Request) error {
	if c.Token == nil {
		return nil
	}
	network := r.PathValue("network")
	switch {
	case strings.HasPrefix(rt.path, "/v1/tokens"):
		return forbidden("a token makes, shows and revokes no tokens: call as " + string(c.Tenant))
	case c.Token.Scope != trust.ScopeWrite && !reads(rt, r):
		return forbidden("this token is for reading only")
	case network != "" && !c.Token.Covers(vnet.VNetID(network)):
		return noSuchLease(vnet.LeaseID{Tenant: vnet.TenantID(r.PathValue("tenant")), Network: vnet.VNetID(network)})
	case network == "" && len(c.Token.Networks) > 0 && !ofAllNetworks[rt.path]:
		return forbidden("this token is for some networks alone, and this is about others too")
	}
	return nil
}

// reads says whether a request only looks: packets and nodes are not looked into.
func reads(rt route, r *http.Request) bool {
	if r.Header.Get("Upgrade") != "" {
		return strings.HasSuffix(rt.path, "/log")
	}
	if strings.HasSuffix(rt.path, "/kept") {
		return false
	}
	return rt.method == http.MethodGet || rt.path == "/v1/offers"
}
