package session

import (
	"fmt"
	"net/http"

	"sublet/internal/problem"
)

// MostSessions is how many sessions one host serves at a time. Each holds a
// thread and four files of the agent, and some 4 MB outside of it; the
// runtime ends a program with 10,000 threads.
const MostSessions = 4000

// Bound refuses what comes while most requests are being served.
func Bound(most int, next http.Handler) http.Handler {
	places := make(chan struct{}, most)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, r)
		default:
			problem.Write(w, http.StatusServiceUnavailable, fmt.Sprintf("this host serves %d sessions, the most it can: try again later", most))
		}
	})
}
