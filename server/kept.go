package server

import (
	"fmt"
	"net/http"

	"sublet/internal/steady"
	"sublet/lease/api"
	"sublet/plan"
)

// kept passes what a node keeps on from the agent of its host, or to it. What is
// moved is as long as disks are: neither side may stand still, and few are moved at a
// time.
func (s *Server) kept(w http.ResponseWriter, r *http.Request, c *call) error {
	l, n, err := s.sessionNode(r, c)
	if err != nil {
		return err
	}
	if !n.Keeps() {
		return &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("%s keeps nothing: only nodes with state: keep have files that last", n.Name)}
	}
	if err := arrived(l, n); err != nil {
		return err
	}
	r.URL.RawQuery = "" // that files are carried is stated by the server alone
	leave, err := s.limiter.move(c.Caller)
	if err != nil {
		return err
	}
	defer leave()
	if r.Method == http.MethodPut {
		r.Body = steady.Body(w, r)
	}
	to := &steady.Writer{ResponseWriter: w}
	defer to.End()
	return s.proxy(to, r, c, hostOf(l, n.Name), "/v1/nodes/"+plan.Namespace(l.ID(), n.Name)+"/kept")
}
