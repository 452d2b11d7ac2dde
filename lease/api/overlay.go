package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"sublet/report"
	"sublet/vnet"
)

// mostState bounds what an agent may answer.
const mostState = 64 << 20

// getOverlay asks a host's agent for its overlay entries; a tenant sees his.
func (s *Server) getOverlay(w http.ResponseWriter, r *http.Request, c *call) error {
	host := vnet.HostID(r.PathValue("host"))
	if _, err := s.planOf(host, false); err != nil {
		return err
	}
	var states []report.TunnelState
	if err := s.ask(r.Context(), host, "/v1/overlay", &states); err != nil {
		return err
	}
	states = slices.DeleteFunc(states, func(o report.TunnelState) bool { return !c.mayTouch(o.Lease.Tenant) })
	return answer(w, http.StatusOK, states)
}

// ask reads something from a host's agent.
func (s *Server) ask(ctx context.Context, host vnet.HostID, path string, result any) error {
	target, transport, err := s.agentOf(host)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.JoinPath(path).String(), nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return agentUnreachable(host, err.Error())
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return agentUnreachable(host, "it answers "+response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, mostState)).Decode(result); err != nil {
		return fmt.Errorf("read what the agent of %s answers: %w", host, err)
	}
	return nil
}

// Overlay reads a host's overlay entries.
func (c *Client) Overlay(ctx context.Context, host vnet.HostID) ([]report.TunnelState, error) {
	var states []report.TunnelState
	return states, c.do(ctx, http.MethodGet, "/v1/hosts/"+url.PathEscape(string(host))+"/overlay", nil, &states)
}
