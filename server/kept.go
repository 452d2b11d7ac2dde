package server

import (
	"fmt"
	"net/http"
	"slices"

	"sublet/internal/steady"
	"sublet/lease/api"
	"sublet/plan"
	"sublet/vnet"
)

// kept passes what a node keeps on from the agent of its host, or to it. What is
// moved is as long as disks are: neither side may stand still, and few are moved at a
// time.
func (s *Server) kept(w http.ResponseWriter, r *http.Request, c *call) error {
	l, err := s.sessionLease(r, c)
	if err != nil {
		return err
	}
	name, all := r.PathValue("node"), l.Topology().All()
	i := slices.IndexFunc(all, func(n vnet.VirtualNode) bool { return n.Name == name })
	if i < 0 {
		return notFound("no node %q in %s", name, l.ID())
	}
	if !all[i].Keeps() {
		return &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("%s keeps nothing: only nodes with state: keep have files that last", name)}
	}
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
	return s.proxy(to, r, c, l.Mapping.Nodes[name], "/v1/nodes/"+plan.Namespace(l.ID(), name)+"/kept")
}
