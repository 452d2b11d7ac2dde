package server

import (
	"errors"
	"net/http"
	"time"

	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

var errNoTokens = &api.Problem{Status: http.StatusNotFound, Detail: "this server keeps no tokens: several servers on one etcd have none"}

// postToken makes a token for the caller, or for a tenant that the operator names.
func (s *Server) postToken(w http.ResponseWriter, r *http.Request, c *call) error {
	if s.tokens == nil {
		return errNoTokens
	}
	if err := s.asks(c, c.Tenant); err != nil {
		return err
	}
	var ask api.TokenAsk
	if err := s.decode(w, r, c, &ask); err != nil {
		return err
	}
	if ask.Tenant == "" {
		ask.Tenant = c.Tenant
	}
	if ask.Tenant == "" {
		return &vnet.FieldError{Path: "tenant", Problem: "state for whom: a certificate is no tenant"}
	}
	if !c.MayTouch(ask.Tenant) {
		return forbidden("only the operator makes tokens for others")
	}
	if ask.For <= 0 || ask.For > trust.LongestFor {
		return &vnet.FieldError{Path: "for_ns", Problem: "state more than 0s and at most 366d"}
	}
	text, made, err := s.tokens.Create(trust.Token{
		Name: ask.Name, Tenant: ask.Tenant, Scope: ask.Scope, Networks: ask.Networks, Expires: s.now().Add(ask.For),
	})
	if err != nil {
		return err
	}
	c.about = "tokens/" + made.ID
	w.Header().Set("Cache-Control", "no-store")
	return answer(w, http.StatusCreated, api.NewToken{Token: made, Text: text})
}

// getTokens lists the caller's tokens, or everybody's for the operator, without
// what one would call with.
func (s *Server) getTokens(w http.ResponseWriter, _ *http.Request, c *call) error {
	if s.tokens == nil {
		return errNoTokens
	}
	return answer(w, http.StatusOK, s.tokens.List(c.MayTouch))
}

// deleteToken revokes one; what is under way with it ends.
func (s *Server) deleteToken(w http.ResponseWriter, r *http.Request, c *call) error {
	if s.tokens == nil {
		return errNoTokens
	}
	err := s.tokens.Revoke(r.PathValue("token"), c.MayTouch)
	if errors.Is(err, trust.ErrNoToken) {
		return notFound("no token %.40q: see sublet token list", r.PathValue("token"))
	}
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, struct {
		Revoked time.Time `json:"revoked"`
	}{s.now().UTC()})
}
