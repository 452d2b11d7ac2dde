package server

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/vnet"
)

// postConsolidation places leases together, or apart.
func (s *Server) postConsolidation(w http.ResponseWriter, r *http.Request, c *call) error {
	var ask api.ConsolidateAsk
	if err := s.decode(w, r, c, &ask); err != nil {
		return err
	}
	aim := cmp.Or(ask.Aim, vnet.FewestHosts)
	if !slices.Contains(vnet.Aims, aim) {
		return &vnet.FieldError{Path: "aim", Problem: "state fewest-hosts or least-loaded"}
	}
	var did lease.Consolidated
	err := s.changeBy(causeOf(c, "consolidate"), func(now time.Time, b *lease.Book) (err error) {
		did, err = b.Consolidate(now, aim, ask.DryRun)
		return err
	})
	if err != nil {
		return err
	}
	of := api.Consolidated{Moved: append([]vnet.Disturbance{}, did.Moved...), Emptied: append([]vnet.HostID{}, did.Emptied...), Full: []api.FullHost{}}
	for _, f := range did.Full {
		of.Full = append(of.Full, api.FullHost{Host: f.Host, Reasons: f.Reasons})
	}
	return answer(w, http.StatusOK, of)
}
