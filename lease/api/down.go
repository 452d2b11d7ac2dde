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
	Back  []vnet.LeaseID `json:"back"`  // were lost, and are carried again, there or elsewhere
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
	after := Aftermath{Moved: []vnet.LeaseID{}, Lost: []LostLease{}, Back: []vnet.LeaseID{}}
	err := s.change(func(now time.Time, b *lease.Book) (err error) {
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

func (a *Aftermath) add(l, was vnet.Lease) {
	switch {
	case l.State == vnet.Ended:
	case l.Lost != nil:
		a.Lost = append(a.Lost, LostLease{l.ID(), l.Lost.Reasons})
	case was.Lost != nil:
		a.Back = append(a.Back, l.ID())
	case !reflect.DeepEqual(l.Mapping, was.Mapping):
		a.Moved = append(a.Moved, l.ID())
	}
}
