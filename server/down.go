package server

import (
	"cmp"
	"errors"
	"net/http"
	"reflect"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/vnet"
)

func (s *Server) putDown(w http.ResponseWriter, r *http.Request, c *call) error {
	return s.setDown(w, r, c, true)
}

func (s *Server) deleteDown(w http.ResponseWriter, r *http.Request, c *call) error {
	return s.setDown(w, r, c, false)
}

// setDown takes in the operator's word that a host or link is down or up.
func (s *Server) setDown(w http.ResponseWriter, r *http.Request, c *call, down bool) error {
	after := api.Aftermath{Moved: []vnet.LeaseID{}, Lost: []api.LostLease{}, Back: []vnet.LeaseID{}}
	did := cmp.Or(r.PathValue("host"), r.PathValue("link")) + " is said to be " + string(upOrDown(!down))
	err := s.changeBy(causeOf(c, did), func(now time.Time, b *lease.Book) (err error) {
		was := make(map[vnet.LeaseID]vnet.Lease)
		for _, l := range b.Leases() {
			was[l.ID()] = l
		}
		if host := r.PathValue("host"); host != "" {
			err = b.SetHostDown(now, vnet.HostID(host), down)
		} else {
			err = b.SetLinkDown(now, r.PathValue("link"), down)
		}
		if errors.Is(err, lease.ErrNoElement) {
			return &api.Problem{Status: http.StatusNotFound, Detail: err.Error()}
		}
		for _, l := range b.Leases() {
			addTo(&after, l, was[l.ID()])
		}
		return err
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, after)
}

// addTo notes in which way a lease, as it is and as it was, was touched.
func addTo(a *api.Aftermath, l, was vnet.Lease) {
	switch {
	case l.State == vnet.Ended:
	case l.Lost != nil:
		a.Lost = append(a.Lost, api.LostLease{Lease: l.ID(), Reasons: l.Lost.Reasons})
	case was.Lost != nil:
		a.Back = append(a.Back, l.ID())
	case !reflect.DeepEqual(l.Mapping, was.Mapping):
		a.Moved = append(a.Moved, l.ID())
	}
}
