package server

import (
	"context"
	"net/url"
	"strconv"

	"sublet/report"
	"sublet/vnet"
)

// counts asks a host's agent for what links have counted, and judges it.
func (s *Server) counts(ctx context.Context, host vnet.HostID, h *collected) error {
	if err := s.connect(host, h); err != nil {
		return err
	}
	at := h.target.JoinPath("/v1/counts")
	at.RawQuery = url.Values{"set": {strconv.FormatUint(h.set, 10)}}.Encode()
	body, err := s.get(ctx, host, h.transport, at)
	if err != nil {
		return err
	}
	c, err := report.DecodeCounts(body, h.set, h.directions)
	if err != nil {
		return agentUnreachable(host, "its counts are wrong: "+err.Error())
	}
	h.set, h.directions = c.Set, c.Links
	s.counted(host, c)
	return nil
}
