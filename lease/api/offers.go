package api

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"sublet/lease"
	"sublet/lease/policy"
	"sublet/vnet"
)

// Proposal is what would come of a request: a quote or a refusal, and the
// calendar around it.
type Proposal struct {
	Admitted bool            `json:"admitted"`
	Taken    bool            `json:"taken,omitempty"` // a lease has this name: the answer is for the same network under another
	Quote    *vnet.Quote     `json:"quote,omitempty"`
	Refusal  *vnet.Rejection `json:"refusal,omitempty"`
	Calendar Calendar        `json:"calendar"`
}

// Calendar is what is booked of every substrate link and host during a window.
type Calendar struct {
	Window vnet.Window     `json:"window"`
	Loads  []vnet.Load     `json:"loads"`
	Hosts  []vnet.HostLoad `json:"hosts"`
}

// loads is a book, or a view of one.
type loads interface {
	Loads(vnet.Window) []vnet.Load
	HostLoads(vnet.Window) []vnet.HostLoad
}

// calendarOf reads a window of a book.
func calendarOf(b loads, w vnet.Window) Calendar {
	return Calendar{Window: w, Loads: b.Loads(w), Hosts: b.HostLoads(w)}
}

// Propose says what would come of a request now. Other errors than a refusal
// are returned.
func Propose(now time.Time, b *lease.Book, req vnet.Request) (Proposal, error) {
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
func propose(terms *policy.Terms, now time.Time, req vnet.Request, ask func(vnet.Request) (vnet.Quote, error), booked loads) (Proposal, error) {
	var p Proposal
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
	p.Calendar = calendarOf(booked, p.horizon(now, req))
	return p, nil
}

// day is what is shown of a calendar unless something else is asked for.
const day = 24 * time.Hour

// horizon spans the request as asked for and as offered; what has no end is
// shown for a day.
func (p Proposal) horizon(now time.Time, req vnet.Request) vnet.Window {
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

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b.UTC()
}

// postOffers answers what would be admitted. It costs what an admission costs.
func (s *Server) postOffers(w http.ResponseWriter, r *http.Request, c *call) error {
	ask, err := s.readAsk(w, r, c)
	if err != nil {
		return err
	}
	var p Proposal
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
	p.Calendar.Loads = c.veilLoads(p.Calendar.Loads)
	if p.Quote != nil {
		p.Quote.Moves = c.veil(p.Quote.Moves)
	}
	return answer(w, http.StatusOK, p)
}

// veil hides whose leases are disturbed, and which of their links, unless
// they are the caller's own.
func (c *call) veil(moves []vnet.Disturbance) []vnet.Disturbance {
	for i := range moves {
		if !c.mayTouch(moves[i].Lease.Tenant) {
			moves[i].Lease, moves[i].Links = vnet.LeaseID{}, nil
		}
	}
	return moves
}

// veilLoads hides from tenants how many leases make up a load, and when one
// takes another's place.
func (c *call) veilLoads(loads []vnet.Load) []vnet.Load {
	if c.Operator {
		return loads
	}
	for i := range loads {
		for j := range loads[i].Steps {
			loads[i].Steps[j].Leases = 0
		}
		loads[i].Steps = slices.CompactFunc(loads[i].Steps, func(a, b vnet.LoadStep) bool { return a.Booked == b.Booked })
	}
	return loads
}

// getCalendar shows how much is booked of every link and host, not whose it is.
func (s *Server) getCalendar(w http.ResponseWriter, r *http.Request, caller *call) error {
	var window vnet.Window
	view, _, err := s.view(nil, func(now time.Time, _ *lease.Book) (err error) {
		window, err = windowOf(r, now)
		return err
	})
	if err != nil {
		return err
	}
	c := calendarOf(view, window)
	c.Loads = caller.veilLoads(c.Loads)
	return answer(w, http.StatusOK, c)
}

// windowOf reads ?from= and ?until=: a day from now on by default.
func windowOf(r *http.Request, now time.Time) (vnet.Window, error) {
	from, err := timeOf(r, "from", now.UTC().Truncate(time.Second))
	if err != nil {
		return vnet.Window{}, err
	}
	until, err := timeOf(r, "until", from.Add(day))
	if err == nil && !until.After(from) {
		err = &vnet.FieldError{Path: "until", Problem: "is not after from: state a later time"}
	}
	return vnet.Window{Start: from, End: until}, err
}

func timeOf(r *http.Request, name string, otherwise time.Time) (time.Time, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return t, &vnet.FieldError{Path: name, Problem: "is not a time such as 2027-03-01T08:00:00Z between 1970 and 2200"}
	}
	return t.UTC(), nil
}
