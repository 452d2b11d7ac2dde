package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// kindMaintenance is of events about leases that have something where and when
// there is maintenance.
const kindMaintenance plan.Kind = "maintenance"

// Bounds of maintenance.
const (
	longestMaintenance = 366 * 24 * time.Hour
	longestNote        = 200
)

// postMaintenance plans work on a host or link.
func (s *Server) postMaintenance(w http.ResponseWriter, r *http.Request, c *call) error {
	var ask api.MaintenanceAsk
	if err := s.decode(w, r, c, &ask); err != nil {
		return err
	}
	c.about = "maintenance of " + clip(ask.Of)
	var m vnet.Maintenance
	var list []lease.Cleared
	err := s.changeBy(causeOf(c, "maintenance"), func(now time.Time, b *lease.Book) (err error) {
		if m, err = planned(now, b.Substrate(), ask); err == nil {
			list, err = b.AddMaintenance(now, m, ask.DryRun)
		}
		return err
	})
	if err != nil {
		return err
	}
	view, err := s.cleared(r.Context(), m, list, c)
	if err != nil {
		return err
	}
	if ask.DryRun {
		view.ID = ""
		return answer(w, http.StatusOK, view)
	}
	s.tellCleared(view)
	return answer(w, http.StatusCreated, view)
}

// planned reads what is asked for.
func planned(now time.Time, sub vnet.Substrate, ask api.MaintenanceAsk) (vnet.Maintenance, error) {
	m := vnet.Maintenance{ID: strings.ToLower(rand.Text()[:8]), Start: now.UTC().Truncate(time.Second), Note: ask.Note}
	_, host := sub.HostOf(ask.Of)
	_, link := sub.LinkOf(ask.Of)
	switch {
	case host:
		m.Host = vnet.HostID(ask.Of)
	case link:
		m.Link = ask.Of
	default:
		return m, notFound("no host or link %.80q of the substrate: see sublet hosts and sublet links", ask.Of)
	}
	if ask.For < time.Second || ask.For > longestMaintenance {
		return m, &vnet.FieldError{Path: "for_ns", Problem: "state 1s to 366d"}
	}
	if !ask.Start.IsZero() {
		m.Start = ask.Start.UTC().Truncate(time.Second)
	}
	m.End = m.Start.Add(ask.For)
	if !m.End.After(now) || m.Start.After(now.Add(10*longestMaintenance)) {
		return m, &vnet.FieldError{Path: "start", Problem: "it would be over already, or is more than ten years away: state another time"}
	}
	if len(ask.Note) > longestNote {
		return m, &vnet.FieldError{Path: "note", Problem: fmt.Sprintf("has %d bytes, more than %d", len(ask.Note), longestNote)}
	}
	return m, nil
}

// getMaintenance lists what is planned, for everybody, with the caller's leases
// that it concerns.
func (s *Server) getMaintenance(w http.ResponseWriter, _ *http.Request, c *call) error {
	list := []api.Maintenance{}
	err := s.look(func(now time.Time, b *lease.Book) error {
		for _, m := range b.Maintenance(now) {
			list = append(list, maintained(m, b.Concerned(m), c))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, list)
}

// deleteMaintenance takes a plan back.
func (s *Server) deleteMaintenance(w http.ResponseWriter, r *http.Request, c *call) error {
	var m vnet.Maintenance
	var leases []vnet.Lease
	err := s.changeBy(causeOf(c, "maintenance"), func(now time.Time, b *lease.Book) (err error) {
		m, leases, err = b.RemoveMaintenance(now, r.PathValue("maintenance"))
		return err
	})
	if errors.Is(err, lease.ErrNoElement) {
		return notFound("no maintenance %.40q is planned: see sublet maintenance list", r.PathValue("maintenance"))
	}
	if err != nil {
		return err
	}
	for _, l := range leases {
		s.tellMaintenance(m, l.ID(), "cancelled", "")
	}
	return answer(w, http.StatusOK, maintained(m, leases, c))
}

// maintained is a plan as a caller sees it.
func maintained(m vnet.Maintenance, leases []vnet.Lease, c *call) api.Maintenance {
	view := api.Maintenance{Maintenance: m, Leases: []vnet.LeaseID{}}
	for _, l := range leases {
		if c.MayTouch(l.Request.Tenant) && c.Token.Covers(l.Request.Network) {
			view.Leases = append(view.Leases, l.ID())
		}
	}
	return view
}

// mostInstead bounds the leases for which something else is looked for at a time.
const mostInstead = 32

// cleared says what becomes of leases, with what those that stay could have instead.
// That is looked for beside everything else, with the work of one answer for all;
// its end costs nothing but offers.
func (s *Server) cleared(ctx context.Context, m vnet.Maintenance, list []lease.Cleared, c *call) (api.Maintenance, error) {
	view := api.Maintenance{Maintenance: m, Leases: []vnet.LeaseID{}}
	var stay []vnet.Lease
	for _, x := range list {
		if x.Stays == nil {
			view.Moved = append(view.Moved, x.Moved)
			continue
		}
		id := x.Lease.ID()
		stay, view.Leases = append(stay, x.Lease), append(view.Leases, id)
		view.Stays = append(view.Stays, api.Staying{Lease: id, Reasons: x.Stays})
	}
	if len(stay) == 0 {
		return view, nil
	}
	err := s.deciders.decide(ctx, c.Caller, func(d deciding) error {
		book, _, err := s.view(nil, func(time.Time, *lease.Book) error { return nil })
		if err != nil {
			return err
		}
		for i, l := range stay[:min(len(stay), mostInstead)] {
			if view.Stays[i].Offers, err = book.Instead(l, m, d.solver, d.effort); err != nil {
				return err
			}
		}
		return nil
	})
	return view, err
}

// tellCleared makes an event of each lease: where it goes, or that it stays and what
// is offered instead.
func (s *Server) tellCleared(view api.Maintenance) {
	for _, d := range view.Moved {
		s.tellMaintenance(view.Maintenance, d.Lease, "moved", d.Words())
	}
	for _, l := range view.Stays {
		why := "it stays: " + strings.Join(l.Reasons, "; ")
		for _, o := range l.Offers {
			why += "; " + o.Words()
		}
		s.tellMaintenance(view.Maintenance, l.Lease, "planned", why)
	}
}

// tellMaintenance makes an event of a lease that has something there.
func (s *Server) tellMaintenance(m vnet.Maintenance, id vnet.LeaseID, state, more string) {
	now, why := s.now(), m.String()
	if m.Note != "" {
		why += ": " + m.Note
	}
	if more != "" {
		why += ": " + more
	}
	why = clipTo(why, mostWhy)
	s.happens(vnet.Happening{Time: now, Lease: id, Kind: string(kindMaintenance), What: id.String(), State: state, By: vnet.OperatorName, Why: why})
	s.feeds.state(report.Sample{Kind: kindMaintenance, Key: id.String(), Lease: id, At: now, State: report.State(state), Why: why})
}
