package server

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sublet/lease/api"
	"sublet/plan"
	"sublet/vnet"
)

// nodeSession passes exec, probe, copy and log on to the agent of the node's host,
// and a question for the node's processes.
func (s *Server) nodeSession(w http.ResponseWriter, r *http.Request, c *call) error {
	l, n, err := s.sessionNode(r, c)
	if err != nil {
		return err
	}
	if n.NAT != "" {
		return &api.Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("%s is a way out, which is the operator's: run commands in the nodes behind it", n.Name)}
	}
	if n.Join != "" {
		return &api.Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("%s is a machine that joins, whose files and processes are its own: run commands there", n.Name)}
	}
	what := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/'):] // as routed
	if err := suits(n, what); err != nil {
		return err
	}
	if err := goesOn(l, what); err != nil {
		return err
	}
	if err := arrived(l, n); err != nil {
		return err
	}
	return s.proxy(w, r, c, hostOf(l, n.Name), "/v1/nodes/"+plan.Namespace(l.ID(), n.Name)+what)
}

// suits refuses a session that a node of its kind has not.
func suits(n vnet.VirtualNode, session string) error {
	if n.Machine() && (session == "/exec" || session == "/copy" || session == "/probe") {
		return &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("%s is a machine, whose files and processes are its own: use its console (sublet attach), or go by its network (ssh)", n.Name)}
	}
	return nil
}

// goesOn refuses a session that needs a process in a node that stands still.
func goesOn(l vnet.Lease, session string) error {
	if l.Paused == nil || !slices.Contains([]string{"/exec", "/copy", "/probe", "/attach"}, session) {
		return nil
	}
	return &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("%s is paused, nothing runs in its nodes: let it go on with sublet resume %s", l.ID(), l.Request.Network)}
}

// arrived refuses what concerns a node whose files are on their way.
func arrived(l vnet.Lease, n vnet.VirtualNode) error {
	if !l.Move.Carries(n, l.Mapping) {
		return nil
	}
	return &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("%s is stopped while what it keeps is copied to another host: try again in a moment", n.Name)}
}

// hostOf is where a node is.
func hostOf(l vnet.Lease, node string) vnet.HostID {
	if l.Move != nil && l.Move.Phase == vnet.MoveCopies {
		return l.Move.From.Nodes[node]
	}
	return l.Mapping.Nodes[node]
}

// linkSession passes a capture on to the agent of the host of the link's
// first end, or of the second with ?end=1.
func (s *Server) linkSession(w http.ResponseWriter, r *http.Request, c *call) error {
	l, err := s.sessionLease(r, c)
	if err != nil {
		return err
	}
	name := r.PathValue("link")
	links := l.Request.Union().Links
	index := slices.IndexFunc(links, func(v vnet.VirtualLink) bool { return v.Name == name })
	if _, exists := l.Topology().Link(name); index < 0 || !exists {
		return notFound("no link %q in %s", name, l.ID())
	}
	end := 0
	if text := r.URL.Query().Get("end"); text != "" {
		if text != "0" && text != "1" {
			return &vnet.FieldError{Path: "end", Problem: "state 0 for the link's first end or 1 for its second"}
		}
		end = int(text[0] - '0')
	}
	host := l.Mapping.Nodes[links[index].Ends[end]]
	return s.proxy(w, r, c, host, "/v1/links/"+plan.Fabric(l.ID())+"/"+strconv.Itoa(index)+"/capture")
}

// getTraffic passes a question for a lease's counters on to the agent of a host.
func (s *Server) getTraffic(w http.ResponseWriter, r *http.Request, c *call) error {
	return s.askCounters(w, r, c, "traffic")
}

// getChains is getTraffic for the hops of chains.
func (s *Server) getChains(w http.ResponseWriter, r *http.Request, c *call) error {
	return s.askCounters(w, r, c, "chains")
}

func (s *Server) askCounters(w http.ResponseWriter, r *http.Request, c *call, of string) error {
	l, err := s.sessionLease(r, c)
	if err != nil {
		return err
	}
	host := vnet.HostID(r.PathValue("host"))
	if !slices.Contains(slices.Collect(maps.Values(l.Mapping.Nodes)), host) {
		return notFound("no node of %s is on a host %q", l.ID(), host)
	}
	return s.proxy(w, r, c, host, "/v1/links/"+plan.Fabric(l.ID())+"/"+of)
}

// getFlows passes a question for the entries of an OpenFlow switch on to the agent
// of its host.
func (s *Server) getFlows(w http.ResponseWriter, r *http.Request, c *call) error {
	return s.askSwitch(w, r, c, "flows")
}

// getSwitch passes a question for what an OpenFlow switch tells of itself on to the
// agent of its host.
func (s *Server) getSwitch(w http.ResponseWriter, r *http.Request, c *call) error {
	return s.askSwitch(w, r, c, "status")
}

// mostTraced bounds the packet of getTrace: headers are what counts.
const mostTraced = 2048

// getTrace passes a question for what would become of a packet on to the agent.
func (s *Server) getTrace(w http.ResponseWriter, r *http.Request, c *call) error {
	if _, err := strconv.ParseUint(r.URL.Query().Get("in_port"), 10, 32); err != nil {
		return &vnet.FieldError{Path: "in_port", Problem: "state the number of the port that receives the packet"}
	}
	if frame, err := hex.DecodeString(r.URL.Query().Get("frame")); err != nil || len(frame) < 14 || len(frame) > mostTraced {
		return &vnet.FieldError{Path: "frame", Problem: fmt.Sprintf("state a frame of 14 to %d bytes in hexadecimal digits", mostTraced)}
	}
	return s.askSwitch(w, r, c, "trace")
}

// askSwitch passes a question about an OpenFlow switch on to the agent of its host.
func (s *Server) askSwitch(w http.ResponseWriter, r *http.Request, c *call, what string) error {
	l, err := s.sessionLease(r, c)
	if err != nil {
		return err
	}
	name := r.PathValue("switch")
	sw, ok := l.Topology().Switch(name)
	switch {
	case !ok:
		return notFound("no switch %q in %s", name, l.ID())
	case sw.Kind != vnet.SwitchOpenFlow:
		return &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("switch %s is of kind %s: only those of kind openflow have entries", name, sw.Kind)}
	}
	return s.proxy(w, r, c, l.Mapping.Nodes[name], "/v1/switches/"+plan.SwitchNamespace(l.ID(), name, sw.Kind)+"/"+what)
}

// sessionLease finds a lease of the caller's that is on its hosts.
func (s *Server) sessionLease(r *http.Request, c *call) (vnet.Lease, error) {
	id, err := idOf(r, c)
	if err != nil {
		return vnet.Lease{}, err
	}
	l, err := s.leaseOf(id)
	if err != nil {
		return l, err
	}
	if l.State == vnet.Booked || l.State == vnet.Ended {
		return l, &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("%s is %s: it has no nodes now", id, l.State)}
	}
	return l, nil
}

// sessionNode is the node that a request names, of a lease that has its nodes now.
func (s *Server) sessionNode(r *http.Request, c *call) (l vnet.Lease, n vnet.VirtualNode, err error) {
	if l, err = s.sessionLease(r, c); err != nil {
		return l, n, err
	}
	name, all := r.PathValue("node"), l.Topology().All()
	i := slices.IndexFunc(all, func(n vnet.VirtualNode) bool { return n.Name == name })
	if i < 0 {
		return l, n, notFound("no node %q in %s", name, l.ID())
	}
	if f := all[i].Function; f != nil && f.Absent {
		return l, n, &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("function %s of %s is absent in this stage: it has no node now", name, l.ID())}
	}
	return l, all[i], nil
}

// getDiff passes a dry run on to the host's agent.
func (s *Server) getDiff(w http.ResponseWriter, r *http.Request, c *call) error {
	host := vnet.HostID(r.PathValue("host"))
	if _, err := s.planOf(host, false); err != nil {
		return err
	}
	return s.proxy(w, r, c, host, "/v1/diff")
}

// getPaths asks a host's agent what its routers and switches forward.
func (s *Server) getPaths(w http.ResponseWriter, r *http.Request, c *call) error {
	host := vnet.HostID(r.PathValue("host"))
	if _, err := s.planOf(host, false); err != nil {
		return err
	}
	return s.proxy(w, r, c, host, "/v1/paths")
}

func notFound(format string, args ...any) error {
	return &api.Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf(format, args...)}
}
