package server

import (
	"net/http"
	"testing"
)

// TestPagesOfOtherSites open no sessions and change nothing.
func TestPagesOfOtherSites(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		method, origin, upgrade string
		other                   bool // it is refused as a page of another site
	}{
		{"GET", "", "websocket", false},
		{"GET", "http://sublet", "websocket", false},
		{"GET", "https://SUBLET", "websocket", false},
		{"GET", "http://sublet.example", "websocket", true},
		{"GET", "http://elsewhere.example", "sublet-session", true},
		{"GET", "null", "websocket", true},
		{"GET", "http://elsewhere.example", "", false},
		{"DELETE", "http://elsewhere.example", "", true},
		{"POST", "null", "", true},
		{"DELETE", "http://sublet", "", false},
	} {
		request := must[*http.Request](t)(http.NewRequestWithContext(within(t), c.method, "http://sublet/v1/leases/a/b/nodes/c/exec", nil))
		if c.origin != "" {
			request.Header.Set("Origin", c.origin)
		}
		if c.upgrade != "" {
			request.Header.Set("Connection", "Upgrade")
			request.Header.Set("Upgrade", c.upgrade)
		}
		response := must[*http.Response](t)(over(r.as(1)).Do(request))
		response.Body.Close()
		if (response.StatusCode == http.StatusForbidden) != c.other {
			t.Errorf("%+v: %s", c, response.Status)
		}
	}
}
