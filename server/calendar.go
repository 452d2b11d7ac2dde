package server

import (
	"net/http"
	"slices"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/vnet"
)

// loads is a book, or a view of one.
type loads interface {
	Loads(vnet.Window) []vnet.Load
	HostLoads(vnet.Window) []vnet.HostLoad
	OutsideLoads(vnet.Window) []vnet.Load
	Planned(vnet.Window) []vnet.Maintenance
}

// calendarOf reads a window of a book.
func calendarOf(b loads, w vnet.Window) api.Calendar {
	return api.Calendar{Window: w, Loads: b.Loads(w), Hosts: b.HostLoads(w), Outside: b.OutsideLoads(w), Maintenance: b.Planned(w)}
}

// day is what is shown of a calendar unless something else is asked for.
const day = 24 * time.Hour

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b.UTC()
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
	c.Loads, c.Outside = caller.veilLoads(c.Loads), caller.veilLoads(c.Outside)
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
