package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/plan"
	"sublet/report"
	"sublet/trust"
	"sublet/vnet"
)

// getPlan hands a host its plan, sealed: at once when it is not the one of
// ?after= and ?term=, else when it changes or the wait is over. Agents of a
// former version state no ?form=.
func (s *Server) getPlan(w http.ResponseWriter, r *http.Request, c *call) error {
	host := vnet.HostID(r.PathValue("host"))
	after, err := numberOf(r, "after", 0)
	if err != nil {
		return err
	}
	form, err := numberOf(r, "form", 1)
	if err != nil {
		return err
	}
	var p plan.Host
	err = s.poll(r, func() (bool, error) {
		p, err = s.planOf(host, r.URL.Query().Has("after"))
		return p.Revision != after || r.URL.Query().Has("term") && p.Term != r.URL.Query().Get("term"), err
	})
	if err != nil {
		return err
	}
	sealed, err := plan.SealIn(form, p)
	if errors.Is(err, plan.ErrUnknown) {
		return &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("the agent of %s is of a former version, upgrade it: %v", host, err)}
	}
	if err != nil {
		return err
	}
	if !p.Begins.IsZero() {
		w.Header().Set(api.PlanBegins, p.Begins.UTC().Format(time.RFC3339Nano))
	}
	return answer(w, http.StatusOK, json.RawMessage(sealed))
}

// numberOf reads a number of the query that may be left out.
func numberOf(r *http.Request, name string, otherwise uint64) (uint64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, &vnet.FieldError{Path: name, Problem: strconv.Quote(text) + " is not a whole number from 0"}
	}
	return number, nil
}

// planOf finds a host's published plan. Asking for what comes after a
// revision is what agents do, and a sign of life.
func (s *Server) planOf(host vnet.HostID, alive bool) (p plan.Host, err error) {
	err = s.look(func(now time.Time, b *lease.Book) error {
		var ok bool
		if p, ok = b.Plan(host); !ok {
			return noSuchHost(host)
		}
		p.Begins = b.PlanBegins(now, host)
		if alive {
			b.Seen(now, host)
			a := s.agents[host]
			a.seen = now
			s.agents[host] = a
		}
		return nil
	})
	return p, err
}

func noSuchHost(host vnet.HostID) error {
	return &api.Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("no host %q in the substrate", host)}
}

// postReport takes in what an agent says of its host.
func (s *Server) postReport(w http.ResponseWriter, r *http.Request, c *call) error {
	var told report.Report
	if err := s.decode(w, r, c, &told); err != nil {
		return err
	}
	if err := c.permit(trust.ForAgents, string(told.Host)); err != nil {
		return err
	}
	from, err := agentAddress(told.Agent, r, c.Caller)
	if err == nil {
		err = s.noServer(r.Context(), told, from)
	}
	if err != nil {
		return err
	}
	if err := s.takeReport(told, from); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// takeReport has the book take in what a host said. Of reports that wait for the book the
// last one has it take in the news of all; where more and more come, the clock does.
func (s *Server) takeReport(told report.Report, from netip.Addr) error {
	s.reporting.Add(1)
	begins := sync.OnceFunc(func() { s.reporting.Add(-1) })
	defer begins()
	return s.changeBy(&cause{by: "host " + string(told.Host)}, func(now time.Time, b *lease.Book) error {
		begins()
		if _, ok := b.Plan(told.Host); !ok {
			return noSuchHost(told.Host)
		}
		if s.agents[told.Host].report.Tried != told.Tried {
			defer s.awaken() // who waits until it is tried; the book may stay as it is
		}
		s.agents[told.Host] = agentState{seen: now, report: told, from: from}
		if err := b.TakeReport(now, told); err != nil || !b.News() || s.reporting.Load() > 0 {
			return err
		}
		return b.Tick(now)
	})
}

// putAdopted makes a host whose agent keeps another plan follow this server's.
func (s *Server) putAdopted(w http.ResponseWriter, r *http.Request, c *call) error {
	host := vnet.HostID(r.PathValue("host"))
	err := s.changeBy(causeOf(c, "host "+string(host)+" is adopted"), func(now time.Time, b *lease.Book) error {
		if _, ok := b.Plan(host); !ok {
			return noSuchHost(host)
		}
		return b.Adopt(now, host)
	})
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
