package api

import (
	"context"
	"net/http"
	"net/url"

	"sublet/vnet"
)

// NotifyAsk says where a tenant is to be told of events.
type NotifyAsk struct {
	URL  string `json:"url,omitempty"`  // to which events are posted
	Mail string `json:"mail,omitempty"` // address
}

// Notify is where a tenant is told of events. Its secret is said once, when it is made.
type Notify struct {
	vnet.Notify
	Lost    uint64 `json:"lost,omitempty"`    // notices since the server started
	Problem string `json:"problem,omitempty"` // of the last one
}

func notifyPath(tenant vnet.TenantID) string {
	if tenant == "" {
		return "/v1/notify"
	}
	return "/v1/notify?" + url.Values{"tenant": {string(tenant)}}.Encode()
}

// Notify is where a tenant is told, "": the caller.
func (c *Client) Notify(ctx context.Context, tenant vnet.TenantID) (n Notify, err error) {
	return n, c.do(ctx, http.MethodGet, notifyPath(tenant), nil, &n)
}

// SetNotify sets where a tenant is told.
func (c *Client) SetNotify(ctx context.Context, tenant vnet.TenantID, ask NotifyAsk) (n Notify, err error) {
	return n, c.do(ctx, http.MethodPut, notifyPath(tenant), ask, &n)
}

// RemoveNotify ends it.
func (c *Client) RemoveNotify(ctx context.Context, tenant vnet.TenantID) error {
	return c.do(ctx, http.MethodDelete, notifyPath(tenant), nil, nil)
}
