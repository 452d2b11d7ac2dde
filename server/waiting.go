package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

// Bounds of requests that wait.
const (
	mostWaiting         = 256
	mostWaitingOfTenant = 8         // and their subordinate users; not of the operator's own asking
	mostWaitingBytes    = 128 << 10 // of a request as JSON
	tryEvery            = time.Second
	tryAnyway           = time.Minute // also if nothing is known to have become free
	restAfterTry        = 3           // times what a try took: a quarter of a processor at most
)

// letWait lets a request wait that was refused.
func (s *Server) letWait(w http.ResponseWriter, c *call, ask api.Ask, refusal *vnet.Rejection) error {
	waiting := vnet.Waiting{Request: ask.Request, Then: ask.Waiting, Since: s.now().UTC(), Why: clipTo(strings.Join(refusal.Reasons, "; "), mostWhy),
		Owner: c.Owner(ask.Request.Tenant), Unlimited: c.Operator}
	if text, err := json.Marshal(ask.Request); err != nil || len(text) > mostWaitingBytes {
		return &vnet.FieldError{Path: "waiting", Problem: "a request that waits has at most 128 KiB: ask again instead"}
	}
	id := waiting.ID()
	account := trust.AccountOf(id.Tenant)
	err := s.changeBy(causeOf(c, ""), func(_ time.Time, b *lease.Book) error {
		_, known := b.Waiting(id)
		all, own := b.AllWaiting(""), 0
		for _, one := range all {
			if trust.AccountOf(one.Request.Tenant) == account {
				own++
			}
		}
		switch {
		case !known && len(all) >= mostWaiting:
			return tooMany("%d requests wait, the most there can be", mostWaiting)
		case !known && !c.Operator && own >= mostWaitingOfTenant:
			return tooMany("%d requests of %s wait, the most at a time: end one (sublet down)", mostWaitingOfTenant, account)
		}
		b.SetWaiting(waiting)
		return nil
	})
	if err != nil {
		return err
	}
	s.tellWaiting(id, "waits", c.Name, waiting.Why)
	return answer(w, http.StatusAccepted, api.Admission{Waiting: &waiting})
}

// tellWaiting makes an event of a request that waits.
func (s *Server) tellWaiting(id vnet.LeaseID, state, by, why string) {
	s.happens(vnet.Happening{Time: s.now(), Lease: id, Kind: kindWaiting, What: id.String(), State: state, By: by, Why: why})
}

func (s *Server) getWaiting(w http.ResponseWriter, _ *http.Request, c *call) error {
	list := []vnet.Waiting{}
	err := s.look(func(_ time.Time, b *lease.Book) error {
		for _, one := range b.AllWaiting("") {
			if c.MayTouch(one.Request.Tenant) && c.Token.Covers(one.Request.Network) {
				list = append(list, one)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, list)
}

func (s *Server) deleteWaiting(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := idOf(r, c)
	if err != nil {
		return err
	}
	var waiting vnet.Waiting
	err = s.changeBy(causeOf(c, ""), func(_ time.Time, b *lease.Book) error {
		waiting, _ = b.Waiting(id)
		if !b.DropWaiting(id) {
			return notFound("no request %s waits", id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.tellWaiting(id, "given up", c.Name, "")
	return answer(w, http.StatusOK, waiting)
}

// keepTrying tries requests that wait when something has become free, until ctx ends.
func (s *Server) keepTrying(ctx context.Context) {
	tick := time.NewTicker(tryEvery)
	defer tick.Stop()
	var last time.Time
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if s.freed.Swap(false) || time.Since(last) > tryAnyway {
			s.tryWaiting(ctx)
			last = time.Now()
		}
	}
}

// frees says whether changes may have made room.
func frees(changes lease.Changes) bool {
	if changes.Substrate != nil || len(changes.NoLeases) > 0 {
		return true
	}
	for _, l := range changes.Leases {
		if l.State == vnet.Ended {
			return true
		}
	}
	return false
}

// tryWaiting tries all once, the one that waits for longest first.
func (s *Server) tryWaiting(ctx context.Context) {
	var list []vnet.Waiting
	if s.room() != nil || s.look(func(_ time.Time, b *lease.Book) error { list = b.AllWaiting(""); return nil }) != nil {
		return // what there is left of the disk is for releases, or the book cannot be read
	}
	for _, w := range list {
		begun := time.Now()
		s.try(ctx, w)
		select {
		case <-time.After(restAfterTry * time.Since(begun)):
		case <-ctx.Done():
			return
		}
	}
}

// try decides about one as if its owner asked again.
func (s *Server) try(ctx context.Context, w vnet.Waiting) {
	tenant := w.Request.Tenant
	c := &call{Caller: trust.Caller{Name: string(tenant), Tenant: tenant, Account: tenant, UID: w.Owner, Operator: w.Unlimited}}
	terms, err := s.termsFor(c, tenant)
	if c.terms = terms; err != nil {
		return // the book cannot be read
	}
	ask := api.Ask{Request: w.Request}
	if w.Then == vnet.WaitingAdmit {
		_, err = s.admit(ctx, c, ask)
	} else {
		_, _, err = s.decide(ctx, c, ask)
	}
	var refusal *vnet.Rejection
	var field *vnet.FieldError
	switch {
	case err == nil && w.Then == vnet.WaitingAdmit:
		s.endWaiting(w, "admitted", "")
	case err == nil:
		s.markWaiting(w, s.now().UTC(), w.Why)
	case errors.As(err, &refusal):
		s.markWaiting(w, time.Time{}, clipTo(strings.Join(refusal.Reasons, "; "), mostWhy))
	case errors.As(err, &field), errors.Is(err, lease.ErrConflict) && s.taken(w.ID()):
		s.endWaiting(w, "given up", clipTo(err.Error(), mostWhy))
	}
}

// taken says whether a lease that is not over has the name.
func (s *Server) taken(id vnet.LeaseID) bool {
	l, err := s.leaseOf(id)
	return err == nil && l.State != vnet.Ended
}

// endWaiting ends that one waits. What was admitted although its owner had given it up
// meanwhile is released.
func (s *Server) endWaiting(w vnet.Waiting, state, why string) {
	waited := false
	err := s.changeBy(clock(), func(now time.Time, b *lease.Book) error {
		if waited = b.DropWaiting(w.ID()); !waited && state == "admitted" {
			return b.Release(now, w.ID())
		}
		return nil
	})
	if err == nil && waited {
		s.tellWaiting(w.ID(), state, clock().by, why)
	}
}

// markWaiting notes whether one that waits fits, and tells what is different.
func (s *Server) markWaiting(w vnet.Waiting, fits time.Time, why string) {
	same := w.Fits.IsZero() == fits.IsZero()
	if same && w.Why == why {
		return
	}
	known := false
	err := s.changeBy(clock(), func(_ time.Time, b *lease.Book) error {
		var is vnet.Waiting
		if is, known = b.Waiting(w.ID()); known {
			is.Why = why
			if !same {
				is.Fits = fits
			}
			b.SetWaiting(is)
		}
		return nil
	})
	switch {
	case err != nil || !known || same:
	case fits.IsZero():
		s.tellWaiting(w.ID(), "no longer possible", clock().by, why)
	default:
		s.tellWaiting(w.ID(), "offer possible", clock().by, "it fits now: ask for it again (sublet up)")
	}
}

// unwait ends that a request of this name waits: it was admitted.
func (s *Server) unwait(r vnet.Request) {
	s.endWaiting(vnet.Waiting{Request: r}, "asked again", "it was admitted")
}
