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

// calendarOf reads a window of a book.
func calendarOf(b *lease.Book, w vnet.Window) Calendar {
	return Calendar{Window: w, Loads: b.Loads(w), Hosts: b.HostLoads(w)}
}

// Propose says what would come of a request now. Other errors than a refusal
// are returned.
func Propose(now time.Time, b *lease.Book, req vnet.Request) (Proposal, error) {
	return propose(nil, now, b, req)
}

// propose is Propose for a tenant with limits.
func propose(terms *policy.Terms, now time.Time, b *lease.Book, req vnet.Request) (Proposal, error) {
	var p Proposal
	err := admissible(terms, now, b, req, func(r vnet.Request) error {
		quote, err := b.Quote(now, r)
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
	l, known := b.Lease(vnet.LeaseID{Tenant: req.Tenant, Network: req.Network})
	p.Taken = known && l.State != vnet.Ended
	p.Calendar = calendarOf(b, p.horizon(now, req))
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
	err = s.look(func(now time.Time, b *lease.Book) (err error) {
		p, err = propose(c.terms, now, b, ask.Request)
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
	var c Calendar
	err := s.look(func(now time.Time, b *lease.Book) error {
		window, err := windowOf(r, now)
		if err == nil {
			c = calendarOf(b, window)
			c.Loads = caller.veilLoads(c.Loads)
		}
		return err
	})
	if err != nil {
		return err
	}
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
