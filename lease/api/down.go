package api

import (
	"errors"
	"net/http"
	"reflect"
	"time"

	"sublet/lease"
	"sublet/vnet"
)

// Aftermath is what came of something going down, or working again.
type Aftermath struct {
	Moved []vnet.LeaseID `json:"moved"` // are carried by something else now
	Lost  []LostLease    `json:"lost"`  // cannot be carried as the substrate is now
}

// LostLease is a lease and why it cannot be carried.
type LostLease struct {
	Lease   vnet.LeaseID `json:"lease"`
	Reasons []string     `json:"reasons"`
}

func (s *Server) putDown(w http.ResponseWriter, r *http.Request, c *call) error {
	return s.setDown(w, r, true)
}

func (s *Server) deleteDown(w http.ResponseWriter, r *http.Request, c *call) error {
	return s.setDown(w, r, false)
}

// setDown takes in the operator's word that a host or link is down or up.
func (s *Server) setDown(w http.ResponseWriter, r *http.Request, down bool) error {
	after := Aftermath{Moved: []vnet.LeaseID{}, Lost: []LostLease{}}
	err := s.change(func(now time.Time, b *lease.Book) (err error) {
		was := make(map[vnet.LeaseID]vnet.Mapping)
		for _, l := range b.Leases() {
			was[l.ID()] = l.Mapping
		}
		if host := r.PathValue("host"); host != "" {
			err = b.SetHostDown(now, vnet.HostID(host), down)
		} else {
			err = b.SetLinkDown(now, r.PathValue("link"), down)
		}
		if errors.Is(err, lease.ErrNoElement) {
			return &Problem{Status: http.StatusNotFound, Detail: err.Error()}
		}
		for _, l := range b.Leases() {
			after.add(l, was[l.ID()])
		}
		return err
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, after)
}

func (a *Aftermath) add(l vnet.Lease, was vnet.Mapping) {
	switch {
	case l.State == vnet.Ended:
	case l.Lost != nil:
		a.Lost = append(a.Lost, LostLease{l.ID(), l.Lost.Reasons})
	case !reflect.DeepEqual(l.Mapping, was):
		a.Moved = append(a.Moved, l.ID())
	}
}
