package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"sublet/lease"
	"sublet/vnet"
)

// Ask is the body of POST /v1/leases.
type Ask struct {
	Request vnet.Request `json:"request"`
	Accept  bool         `json:"accept,omitempty"` // take the counter-offer, if it comes to that
}

// Admission is a yes: the lease, and what it lacks of the request when the
// counter-offer was accepted.
type Admission struct {
	Lease   vnet.Lease    `json:"lease"`
	Changes []vnet.Change `json:"changes,omitempty"`
	// Moves are leases that are moved to make room.
	Moves []vnet.Disturbance `json:"moves,omitempty"`
}

// readAsk reads what a caller asks for, who may not ask too often, and the
// limits that it has to keep.
func (s *Server) readAsk(w http.ResponseWriter, r *http.Request, c *call) (ask Ask, err error) {
	if c.terms, err = s.termsFor(c, c.Tenant); err != nil {
		return ask, err
	}
	if c.terms != nil {
		if err := s.limiter.admission(c.Caller, c.terms.AsksPerSecond()); err != nil {
			return ask, err
		}
	}
	if err := s.decode(w, r, c, &ask); err != nil {
		return ask, err
	}
	if c.terms != nil {
		c.terms.Fill(&ask.Request)
	}
	return ask, c.name(&ask.Request)
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
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/leases/"+c.about)
	return answer(w, http.StatusCreated, admission)
}

// name fills in the tenant, who must be the caller unless that is the operator.
func (c *call) name(req *vnet.Request) error {
	if req.Tenant == "" {
		req.Tenant = c.Tenant
	}
	if !c.mayTouch(req.Tenant) {
		return forbidden(fmt.Sprintf("%s cannot lease for %s: leave the tenant out", c.Name, strconv.Quote(string(req.Tenant))))
	}
	req.Fill()
	return req.Check()
}

// mostChanged is how often a request is decided anew because others were
// admitted, or things failed, while it was.
const mostChanged = 4

// admit decides about a request and books what was decided.
func (s *Server) admit(ctx context.Context, c *call, ask Ask) (Admission, error) {
	owner := c.owner(ask.Request.Tenant) // reads files: not under the lock
	for range mostChanged {
		found, changes, err := s.decide(ctx, c, ask)
		if err != nil {
			return Admission{}, err
		}
		admission := Admission{Changes: changes}
		err = s.change(func(now time.Time, b *lease.Book) (err error) {
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
	return Admission{}, &Problem{Status: http.StatusServiceUnavailable, After: 1,
		Detail: "while this was decided others were admitted, time and again: ask again"}
}

// decide finds out how a request, or the counter-offer if that is to be taken,
// would be admitted, and what that lacks of the request.
func (s *Server) decide(ctx context.Context, c *call, ask Ask) (found lease.Decision, changes []vnet.Change, err error) {
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

func (s *Server) getLeases(w http.ResponseWriter, _ *http.Request, c *call) error {
	leases := []vnet.Lease{}
	var now time.Time
	err := s.look(func(at time.Time, b *lease.Book) error {
		now = at
		if c.Operator {
			leases = append(leases, b.Leases()...)
		} else {
			leases = append(leases, b.Of(c.Tenant)...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range leases { // outside of the lock: it takes a while
		leases[i] = presented(leases[i], now)
	}
	return answer(w, http.StatusOK, leases)
}

// presented brings a lease's account to the present, and says whether it is
// still what its verdict is about.
func presented(l vnet.Lease, now time.Time) vnet.Lease {
	if l.Verdict != nil {
		verdict := *l.Verdict
		verdict.Stale = verdict.Digest == "" || l.State != vnet.Ended && verdict.Digest != l.Digest()
		l.Verdict = &verdict
	}
	if !l.State.Up() {
		return l
	}
	return l.Metered(now)
}

// idOf reads a lease's name out of a path. Another tenant's lease is as good
// as missing.
func idOf(r *http.Request, c *call) (vnet.LeaseID, error) {
	id := vnet.LeaseID{Tenant: vnet.TenantID(r.PathValue("tenant")), Network: vnet.VNetID(r.PathValue("network"))}
	if !c.mayTouch(id.Tenant) {
		return id, noSuchLease(id)
	}
	return id, nil
}

// leaseOf finds the lease that a path names.
func (s *Server) leaseOf(id vnet.LeaseID) (l vnet.Lease, err error) {
	var now time.Time
	err = s.look(func(at time.Time, b *lease.Book) error {
		var ok bool
		if l, ok = b.Lease(id); !ok {
			return noSuchLease(id)
		}
		now = at
		return nil
	})
	if err != nil {
		return l, err
	}
	return presented(l, now), nil
}

// Settled says that a deployment came to an end, good or bad.
func Settled(l vnet.Lease) bool {
	return l.State.Up() || l.State == vnet.Failed || l.State == vnet.Ended
}

// Gone says that no host has anything of the lease any more.
func Gone(l vnet.Lease) bool {
	return l.State == vnet.Ended && len(l.Addresses) == 0
}

// untils are the conditions that ?until= can name.
var untils = map[string]func(vnet.Lease) bool{
	"":        func(vnet.Lease) bool { return true },
	"settled": Settled,
	"gone":    Gone,
}

func (s *Server) getLease(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := idOf(r, c)
	if err != nil {
		return err
	}
	until, ok := untils[r.URL.Query().Get("until")]
	if !ok {
		return &vnet.FieldError{Path: "until", Problem: "state settled or gone"}
	}
	var l vnet.Lease
	err = s.poll(r, func() (bool, error) {
		l, err = s.leaseOf(id)
		return until(l), err
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, l)
}

// deleteLease ends a lease; its hosts remove it afterwards.
func (s *Server) deleteLease(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := idOf(r, c)
	if err != nil {
		return err
	}
	err = s.change(func(now time.Time, b *lease.Book) error {
		if _, ok := b.Lease(id); !ok {
			return noSuchLease(id)
		}
		return b.Release(now, id)
	})
	if err != nil {
		return err
	}
	l, err := s.leaseOf(id)
	if err != nil {
		return err
	}
	return answer(w, http.StatusAccepted, l)
}
