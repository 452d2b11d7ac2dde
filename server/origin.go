package server

import (
	"net/http"
	"net/url"
	"strings"
)

// sameOrigin refuses what a page of another site makes a browser ask for that
// does something, or opens a session: a browser shows its certificate to us
// whatever page asks. Answers to other calls are not shown to such a page.
func sameOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" || r.Header.Get("Upgrade") == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		return nil
	}
	if u, err := url.Parse(origin); err == nil && strings.EqualFold(u.Host, r.Host) {
		return nil
	}
	return forbidden("a page of another site may not ask for this: its Origin is not the host that is called")
}
