package server

import (
	"errors"
	"net/http"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/lease/policy"
	"sublet/vnet"
)

// Propose says what would come of a request now. Other errors than a refusal
// are returned.
func Propose(now time.Time, b *lease.Book, req vnet.Request) (api.Proposal, error) {
	p, err := propose(nil, now, req, func(r vnet.Request) (vnet.Quote, error) { return b.Quote(now, r) }, b)
	p.Taken = isTaken(b, req)
	return p, err
}

// isTaken says whether a live lease has a request's name.
func isTaken(b *lease.Book, req vnet.Request) bool {
	l, known := b.Lease(vnet.LeaseID{Tenant: req.Tenant, Network: req.Network})
	return known && l.State != vnet.Ended
}

// propose is Propose for a tenant with limits.
func propose(terms *policy.Terms, now time.Time, req vnet.Request, ask func(vnet.Request) (vnet.Quote, error), booked loads) (api.Proposal, error) {
	var p api.Proposal
	err := admissible(terms, now, req, ask, func(r vnet.Request) error {
		quote, err := ask(r)
		p.Quote = &quote
		return err
	})
	switch {
	case err == nil:
		p.Admitted = true
	case !errors.As(err, &p.Refusal):
		return p, err
	default:
		p.Quote = nil
	}
	p.Calendar = calendarOf(booked, horizon(p, now, req))
	return p, nil
}

// horizon spans the request as asked for and as offered; what has no end is
// shown for a day.
func horizon(p api.Proposal, now time.Time, req vnet.Request) vnet.Window {
	w := vnet.Window{Start: now.UTC().Truncate(time.Second)}
	requests := []vnet.Request{req}
	if p.Refusal != nil {
		for _, o := range p.Refusal.Offers {
			requests = append(requests, o.Request)
		}
	}
	for _, r := range requests {
		start := r.Start
		if start.IsZero() {
			start = now
		}
		length := r.For
		if length == 0 {
			length = day
		}
		w.End = latest(w.End, start.Add(length))
	}
	if p.Quote != nil {
		w.End = latest(w.End, p.Quote.Window.End)
	}
	return w
}

// postOffers answers what would be admitted. It costs what an admission costs.
func (s *Server) postOffers(w http.ResponseWriter, r *http.Request, c *call) error {
	ask, err := s.readAsk(w, r, c)
	if err != nil {
		return err
	}
	var p api.Proposal
	err = s.deciders.decide(r.Context(), c.Caller, func(d deciding) error {
		taken := false
		view, terms, err := s.view(c, func(_ time.Time, b *lease.Book) error {
			taken = isTaken(b, ask.Request)
			return nil
		})
		if err != nil {
			return err
		}
		p, err = propose(terms, view.Now(), ask.Request, func(r vnet.Request) (vnet.Quote, error) {
			return view.Quote(r, d.solver, d.effort)
		}, view)
		p.Taken = taken
		return err
	})
	if err != nil {
		return err
	}
	p.Calendar.Loads, p.Calendar.Outside = c.veilLoads(p.Calendar.Loads), c.veilLoads(p.Calendar.Outside)
	if p.Quote != nil {
		p.Quote.Moves = c.veil(p.Quote.Moves)
	}
	return answer(w, http.StatusOK, p)
}

// veil hides whose leases are disturbed, and what of them, unless they are the
// caller's own.
func (c *call) veil(moves []vnet.Disturbance) []vnet.Disturbance {
	for i := range moves {
		if !c.MayTouch(moves[i].Lease.Tenant) {
			moves[i].Lease, moves[i].Links, moves[i].Nodes = vnet.LeaseID{}, nil, nil
		}
	}
	return moves
}
