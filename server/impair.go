package server

import (
	"errors"
	"net/http"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/vnet"
)

// putImpair changes what a link of a running lease does to its frames.
func (s *Server) putImpair(w http.ResponseWriter, r *http.Request, c *call) error {
	var ask api.ImpairAsk
	return s.changeLink(w, r, c, &ask, func(now time.Time, b *lease.Book, id vnet.LeaseID, link string) error {
		err := b.Impair(now, id, link, ask.Impair)
		if err == nil {
			s.cause.tells(id, impairText(link, ask.Impair))
		}
		return err
	})
}

// putLinkState takes a link of a running lease down, or up again.
func (s *Server) putLinkState(w http.ResponseWriter, r *http.Request, c *call) error {
	var ask api.LinkStateAsk
	return s.changeLink(w, r, c, &ask, func(now time.Time, b *lease.Book, id vnet.LeaseID, link string) error {
		err := b.SetDown(now, id, link, ask.Down)
		if err == nil {
			s.cause.tells(id, "link "+link+" "+string(upOrDown(!ask.Down)))
		}
		return err
	})
}

// putStage lets a stage of a running lease begin.
func (s *Server) putStage(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := idOf(r, c)
	if err != nil {
		return err
	}
	if err := s.asks(c, id.Tenant); err != nil {
		return err
	}
	var ask api.StageAsk
	if err := s.decode(w, r, c, &ask); err != nil {
		return err
	}
	return s.changeLease(w, c, id, func(now time.Time, b *lease.Book) error { return b.BeginStage(now, id, ask.Stage) })
}

// putPause has the nodes of a running lease stand still.
func (s *Server) putPause(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := idOf(r, c)
	if err != nil {
		return err
	}
	if err := s.asks(c, id.Tenant); err != nil {
		return err
	}
	var ask api.PauseAsk
	if err := s.decode(w, r, c, &ask); err != nil {
		return err
	}
	return s.changeLease(w, c, id, func(now time.Time, b *lease.Book) error { return b.Pause(now, id, ask.GiveBack) })
}

// putResume lets them go on.
func (s *Server) putResume(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := idOf(r, c)
	if err != nil {
		return err
	}
	if err := s.asks(c, id.Tenant); err != nil {
		return err
	}
	return s.changeLease(w, c, id, func(now time.Time, b *lease.Book) error {
		return b.Resume(now, id, keepsOf(c, now, b, id))
	})
}

// linkChange is what the book does to a link of a lease.
type linkChange func(now time.Time, b *lease.Book, id vnet.LeaseID, link string) error

// changeLink reads what is asked for, does it to a link of a running lease, and
// answers the lease.
func (s *Server) changeLink(w http.ResponseWriter, r *http.Request, c *call, ask any, change linkChange) error {
	id, err := idOf(r, c)
	if err != nil {
		return err
	}
	if err := s.asks(c, id.Tenant); err != nil {
		return err
	}
	if err := s.decode(w, r, c, ask); err != nil {
		return err
	}
	return s.changeLease(w, c, id, func(now time.Time, b *lease.Book) error { return change(now, b, id, r.PathValue("link")) })
}

// changeLease does something to a lease and answers it.
func (s *Server) changeLease(w http.ResponseWriter, c *call, id vnet.LeaseID, change func(now time.Time, b *lease.Book) error) error {
	err := s.changeBy(causeOf(c, ""), func(now time.Time, b *lease.Book) error {
		if _, ok := b.Lease(id); !ok {
			return noSuchLease(id)
		}
		return change(now, b)
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
