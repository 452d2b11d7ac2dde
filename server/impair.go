package server

import (
	"errors"
	"net/http"
	"time"

	"sublet/lease"
	"sublet/lease/api"
)

// putImpair changes what a link of a running lease does to its frames.
func (s *Server) putImpair(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := idOf(r, c)
	if err != nil {
		return err
	}
	if err := s.asks(c, id.Tenant); err != nil {
		return err
	}
	var ask api.ImpairAsk
	if err := s.decode(w, r, c, &ask); err != nil {
		return err
	}
	err = s.change(func(now time.Time, b *lease.Book) error {
		if _, ok := b.Lease(id); !ok {
			return noSuchLease(id)
		}
		return b.Impair(id, r.PathValue("link"), ask.Impair)
	})
	if errors.Is(err, lease.ErrConflict) {
		return &api.Problem{Status: http.StatusConflict, Detail: err.Error()}
	}
	if err != nil {
		return err
	}
	l, err := s.leaseOf(id)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, l)
}
