package server

import (
	"net/http"
	"slices"
	"time"

	"sublet/lease"
	"sublet/vnet"
)

// getSubstrate shows the graph; only the operator sees how hosts reach one another.
func (s *Server) getSubstrate(w http.ResponseWriter, _ *http.Request, c *call) error {
	var sub vnet.Substrate
	err := s.look(func(_ time.Time, b *lease.Book) error {
		sub = b.Substrate()
		return nil
	})
	if err != nil {
		return err
	}
	if !c.Operator {
		sub.Hosts, sub.Links = slices.Clone(sub.Hosts), slices.Clone(sub.Links)
		for i := range sub.Hosts {
			sub.Hosts[i].Machine = ""
		}
		for i := range sub.Links {
			sub.Links[i].Ports = [2]vnet.Port{}
		}
	}
	return answer(w, http.StatusOK, sub)
}
