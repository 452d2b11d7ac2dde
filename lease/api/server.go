package api

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Server is one of the servers that share a store.
type Server struct {
	Name    string    `json:"name"`
	Address string    `json:"address,omitempty"` // HOST:PORT where it answers; "": on its machine only
	Member  string    `json:"member,omitempty"`  // HOST:PORT of its member of the store; "": the store is external
	Leads   bool      `json:"leads"`
	Since   time.Time `json:"since,omitzero"` // when it was added
	// ClockAhead is by how many seconds its clock is ahead of that of the server that
	// leads, 0 within a second; nil: it was not compared.
	ClockAhead *float64 `json:"clock_ahead_s,omitempty"`
}

// Servers lists the servers that share the store; for the operator.
func (c *Client) Servers(ctx context.Context) ([]Server, error) {
	var list []Server
	return list, c.do(ctx, http.MethodGet, "/v1/servers", nil, &list)
}

// AddServer lets a further server take part, in place of another one unless
// replaces is ""; for the operator.
func (c *Client) AddServer(ctx context.Context, s Server, replaces string) error {
	query := ""
	if replaces != "" {
		query = "?" + url.Values{"replaces": {replaces}}.Encode()
	}
	body := struct {
		Address string `json:"address"`
		Member  string `json:"member,omitempty"`
	}{s.Address, s.Member}
	return c.do(ctx, http.MethodPut, "/v1/servers/"+url.PathEscape(s.Name)+query, body, nil)
}

// RemoveServer ends a server's taking part; for the operator.
func (c *Client) RemoveServer(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, "/v1/servers/"+url.PathEscape(name), nil, nil)
}
