package server

import (
	"errors"
	"net/http"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/vnet"
)

func (s *Server) putDrained(w http.ResponseWriter, r *http.Request, _ *call) error {
	return s.setDrained(w, r, true)
}

func (s *Server) deleteDrained(w http.ResponseWriter, r *http.Request, _ *call) error {
	return s.setDrained(w, r, false)
}

// setDrained takes in the operator's word that a host takes nothing new, or does again.
func (s *Server) setDrained(w http.ResponseWriter, r *http.Request, drained bool) error {
	of := api.Drained{Moved: []vnet.LeaseID{}, Stays: []api.LostLease{}}
	err := s.change(func(now time.Time, b *lease.Book) error {
		list, err := b.SetHostDrained(now, vnet.HostID(r.PathValue("host")), drained)
		if errors.Is(err, lease.ErrNoElement) {
			return noSuchHost(vnet.HostID(r.PathValue("host")))
		}
		for _, d := range list {
			if len(d.Stays) > 0 {
				of.Stays = append(of.Stays, api.LostLease{Lease: d.Lease, Reasons: d.Stays})
			} else {
				of.Moved = append(of.Moved, d.Lease)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, of)
}
