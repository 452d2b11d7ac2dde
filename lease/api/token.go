package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"sublet/trust"
	"sublet/vnet"
)

// TokenAsk asks for a token.
type TokenAsk struct {
	Name     string        `json:"name,omitempty"`   // for people
	Tenant   vnet.TenantID `json:"tenant,omitempty"` // the caller
	Scope    string        `json:"scope"`            // read or write
	Networks []vnet.VNetID `json:"networks,omitempty"`
	For      time.Duration `json:"for_ns"`
}

// NewToken is a token with what one calls with, which is shown once.
type NewToken struct {
	trust.Token
	Text string `json:"token"`
}

// CreateToken makes a token.
func (c *Client) CreateToken(ctx context.Context, ask TokenAsk) (made NewToken, err error) {
	return made, c.do(ctx, http.MethodPost, "/v1/tokens", ask, &made)
}

// Tokens lists the caller's tokens; all for the operator.
func (c *Client) Tokens(ctx context.Context) (list []trust.Token, err error) {
	return list, c.do(ctx, http.MethodGet, "/v1/tokens", nil, &list)
}

// RevokeToken makes a token worthless.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/v1/tokens/"+url.PathEscape(id), nil, nil)
}
