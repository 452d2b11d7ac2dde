package server

import (
	"net/http"
	"slices"

	"sublet/report"
	"sublet/vnet"
)

// getOverlay asks a host's agent for its overlay entries; a tenant sees theirs.
func (s *Server) getOverlay(w http.ResponseWriter, r *http.Request, c *call) error {
	host := vnet.HostID(r.PathValue("host"))
	if _, err := s.planOf(host, false); err != nil {
		return err
	}
	var states []report.TunnelState
	if err := s.ask(r.Context(), host, "/v1/overlay", &states); err != nil {
		return err
	}
	states = slices.DeleteFunc(states, func(o report.TunnelState) bool { return !c.MayTouch(o.Lease.Tenant) })
	return answer(w, http.StatusOK, states)
}

// tables passes on to a host's agent what is asked of the operator's own tunnels.
func (s *Server) tables(w http.ResponseWriter, r *http.Request, c *call) error {
	host := vnet.HostID(r.PathValue("host"))
	if _, err := s.planOf(host, false); err != nil {
		return err
	}
	c.about = "tables of " + string(host)
	return s.proxy(w, r, c, host, "/v1/tables")
}
