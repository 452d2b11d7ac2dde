package server

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"

	"sublet/lease/api"
	"sublet/plan"
	"sublet/vnet"
)

// keyBytes is the length of a key of WireGuard.
const keyBytes = 32

// join passes on to the agent of the node's host that a machine may become it, or
// none.
func (s *Server) join(w http.ResponseWriter, r *http.Request, c *call) error {
	l, err := s.sessionLease(r, c)
	if err != nil {
		return err
	}
	node, nodes := r.PathValue("node"), l.Topology().Nodes
	i := slices.IndexFunc(nodes, func(n vnet.VirtualNode) bool { return n.Name == node })
	switch {
	case i < 0:
		return notFound("no node %q in %s", node, l.ID())
	case nodes[i].Join == "":
		return &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("no machine can become node %s: state join at it in the request", node)}
	case !l.State.Up():
		return &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("%s is %s: wait until it runs (sublet wait)", l.ID(), l.State)}
	}
	if public := r.URL.Query().Get("public_key"); public != "" {
		if key, err := base64.StdEncoding.DecodeString(public); err != nil || len(key) != keyBytes {
			return &vnet.FieldError{Path: "public_key", Problem: "is no public key of WireGuard: give the line that wg pubkey prints"}
		}
	}
	return s.proxy(w, r, c, l.Mapping.Nodes[node], "/v1/nodes/"+plan.Namespace(l.ID(), node)+"/join")
}
