package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/vnet"
)

// readAsk reads what a caller asks for, who may not ask too often, and the
// limits that it has to keep.
func (s *Server) readAsk(w http.ResponseWriter, r *http.Request, c *call) (ask api.Ask, err error) {
	if err := s.readTerms(w, r, c, &ask, &ask.Request); err != nil {
		return ask, err
	}
	if ask.Waiting != "" && ask.Waiting != vnet.WaitingOffer && ask.Waiting != vnet.WaitingAdmit {
		return ask, &vnet.FieldError{Path: "waiting", Problem: "state offer or admit"}
	}
	return ask, c.name(&ask.Request)
}

// readTerms reads a body with a request, and the limits that it has to keep.
func (s *Server) readTerms(w http.ResponseWriter, r *http.Request, c *call, body any, request *vnet.Request) (err error) {
	if err := s.asks(c, c.Tenant); err != nil {
		return err
	}
	if err := s.decode(w, r, c, body); err != nil {
		return err
	}
	if c.terms != nil {
		c.terms.Fill(request)
	}
	return nil
}

// asks counts a question against how many a caller may ask a second, and notes
// their terms.
func (s *Server) asks(c *call, tenant vnet.TenantID) (err error) {
	if c.terms, err = s.termsFor(c, tenant); err != nil || c.terms == nil {
		return err
	}
	return s.limiter.admission(c.Caller, c.terms.AsksPerSecond())
}

func (s *Server) postLease(w http.ResponseWriter, r *http.Request, c *call) error {
	ask, err := s.readAsk(w, r, c)
	if err != nil {
		return err
	}
	c.about = string(ask.Request.Tenant) + "/" + string(ask.Request.Network)
	if err := s.room(); err != nil {
		return err
	}
	admission, err := s.admit(r.Context(), c, ask)
	s.counters.refused(err)
	if refusal := (*vnet.Rejection)(nil); ask.Waiting != "" && errors.As(err, &refusal) {
		return s.letWait(w, c, ask, refusal)
	}
	if err != nil {
		return err
	}
	s.unwait(ask.Request)
	w.Header().Set("Location", "/v1/leases/"+c.about)
	return answer(w, http.StatusCreated, admission)
}

// name fills in the tenant, who must be the caller unless that is the operator.
func (c *call) name(req *vnet.Request) error {
	if req.Tenant == "" {
		req.Tenant = c.Tenant
	}
	if !c.MayTouch(req.Tenant) {
		return forbidden(fmt.Sprintf("%s cannot lease for %s: leave the tenant out", c.Name, strconv.Quote(string(req.Tenant))))
	}
	if !c.Token.Covers(req.Network) {
		return forbidden(fmt.Sprintf("this token is not for a network %s", strconv.Quote(string(req.Network))))
	}
	req.Fill()
	return req.Check()
}

// mostChanged is how often a request is decided anew because others were
// admitted, or things failed, while it was.
const mostChanged = 4

// admit decides about a request and books what was decided.
func (s *Server) admit(ctx context.Context, c *call, ask api.Ask) (api.Admission, error) {
	defer s.counters.decided(time.Now())
	owner := c.Owner(ask.Request.Tenant) // reads files: not under the lock
	for range mostChanged {
		found, changes, err := s.decide(ctx, c, ask)
		if err != nil {
			return api.Admission{}, err
		}
		admission := api.Admission{Changes: changes}
		err = s.changeBy(causeOf(c, ""), func(now time.Time, b *lease.Book) (err error) {
			if c.terms != nil && c.terms.Check(now, b, found.Request()) != nil {
				return lease.ErrChanged // by another request of the same tenant
			}
			if admission.Lease, err = b.Commit(now, found, owner); err == nil {
				admission.Moves = c.veil(b.Moves(admission.Lease.Serial))
			}
			return err
		})
		if !errors.Is(err, lease.ErrChanged) {
			return admission, err
		}
	}
	return api.Admission{}, &api.Problem{Status: http.StatusServiceUnavailable, After: 1,
		Detail: "while this was decided others were admitted, time and again: ask again"}
}

// decide finds out how a request, or the counter-offer if that is to be taken,
// would be admitted, and what that lacks of the request.
func (s *Server) decide(ctx context.Context, c *call, ask api.Ask) (found lease.Decision, changes []vnet.Change, err error) {
	if err := s.runsMachines(ask.Request); err != nil {
		return found, nil, err
	}
	err = s.deciders.decide(ctx, c.Caller, func(d deciding) error {
		view, terms, err := s.view(c, func(_ time.Time, b *lease.Book) error { return b.Taken(ask.Request) })
		if err != nil {
			return err
		}
		quote := func(r vnet.Request) (vnet.Quote, error) { return view.Quote(r, d.solver, d.effort) }
		decide := func(r vnet.Request) (err error) {
			found, err = view.Decide(r, d.solver, d.effort)
			return err
		}
		err = admissible(terms, view.Now(), ask.Request, quote, decide)
		rejection, refused := err.(*vnet.Rejection)
		if refused && ask.Accept && rejection.Offer != nil && (d.last || !d.effort.Short()) {
			changes = rejection.Changes
			d.effort.Renew()
			err = admissible(terms, view.Now(), *rejection.Offer, quote, decide)
		}
		return err
	})
	return found, changes, err
}
