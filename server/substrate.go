package server

import (
	"net/http"
	"net/netip"
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
		sub = veiled(sub)
	}
	return answer(w, http.StatusOK, sub)
}

// veiled is a substrate without what is the operator's: which machines, ports
// and networks stand behind it.
func veiled(sub vnet.Substrate) vnet.Substrate {
	sub.Hosts, sub.Links, sub.NAT = slices.Clone(sub.Hosts), slices.Clone(sub.Links), slices.Clone(sub.NAT)
	for i := range sub.Hosts {
		sub.Hosts[i].Machine = ""
	}
	for i := range sub.Links {
		sub.Links[i].Ports = [2]vnet.Port{}
	}
	for i := range sub.NAT {
		sub.NAT[i].Interface, sub.NAT[i].Via, sub.NAT[i].Refuse = "", netip.Addr{}, nil
	}
	return sub
}
