package server

import (
	"net/http"
	"slices"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/plan"
	"sublet/vnet"
)

func (s *Server) getLeases(w http.ResponseWriter, _ *http.Request, c *call) error {
	leases := []vnet.Lease{}
	var now time.Time
	var exposed ports
	err := s.look(func(at time.Time, b *lease.Book) error {
		now, exposed = at, s.exposed()
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
	concerns, err := s.concernsNow()
	if err != nil {
		return err
	}
	leases = slices.DeleteFunc(leases, func(l vnet.Lease) bool { return !c.Token.Covers(l.Request.Network) })
	for i := range leases { // outside of the lock: it takes a while
		leases[i] = exposed.of(s.presented(leases[i], now))
		leases[i].Concerns = concerns.of(leases[i])
	}
	return answer(w, http.StatusOK, leases)
}

// presented is one with what kernels spent on its packets, too.
func (s *Server) presented(l vnet.Lease, now time.Time) vnet.Lease {
	l = presented(l, now)
	if spent := s.metering.of(l.ID()); spent > 0 && l.Account != nil && l.State != vnet.Ended {
		l.Account = l.Account.Charged(spent)
	}
	return l
}

// presented brings a lease's account to the present, and says whether it is
// still what its verdict is about.
func presented(l vnet.Lease, now time.Time) vnet.Lease {
	if l.Verdict != nil {
		verdict := *l.Verdict
		verdict.Stale = verdict.Digest == "" || l.State != vnet.Ended && verdict.Digest != l.Digest()
		l.Verdict = &verdict
	}
	if !l.State.Holds() {
		return l
	}
	return l.Metered(now)
}

// ports are what images of nodes say they serve, by host and namespace.
type ports map[vnet.HostID]map[string][]string

// exposed is what hosts have reported. Reports are replaced and never changed.
func (s *Server) exposed() ports {
	all := make(ports)
	for host, a := range s.agents {
		if len(a.report.Exposed) > 0 {
			all[host] = a.report.Exposed
		}
	}
	return all
}

// of is a lease with the ports of its nodes.
func (p ports) of(l vnet.Lease) vnet.Lease {
	if len(p) == 0 || !l.State.Holds() {
		return l
	}
	for node, host := range l.Mapping.Nodes {
		if list := p[host][plan.Namespace(l.ID(), node)]; len(list) > 0 {
			if l.Exposed == nil {
				l.Exposed = make(map[string][]string)
			}
			l.Exposed[node] = list
		}
	}
	return l
}

// idOf reads a lease's name out of a path. Another tenant's lease is as good
// as missing.
func idOf(r *http.Request, c *call) (vnet.LeaseID, error) {
	id := vnet.LeaseID{Tenant: vnet.TenantID(r.PathValue("tenant")), Network: vnet.VNetID(r.PathValue("network"))}
	if !c.MayTouch(id.Tenant) {
		return id, noSuchLease(id)
	}
	return id, nil
}

// leaseOf finds the lease that a path names.
func (s *Server) leaseOf(id vnet.LeaseID) (l vnet.Lease, err error) {
	var now time.Time
	var exposed ports
	err = s.look(func(at time.Time, b *lease.Book) error {
		var ok bool
		if l, ok = b.Lease(id); !ok {
			return noSuchLease(id)
		}
		now, exposed = at, s.exposed()
		return nil
	})
	if err != nil {
		return l, err
	}
	return exposed.of(s.presented(l, now)), nil
}

// untils are the conditions that ?until= can name.
var untils = map[string]func(*Server, vnet.Lease) bool{
	"":        func(*Server, vnet.Lease) bool { return true },
	"settled": func(_ *Server, l vnet.Lease) bool { return api.Settled(l) },
	"gone":    func(_ *Server, l vnet.Lease) bool { return api.Gone(l) },
	"applied": (*Server).applied,
}

// applied says that the form that its owner gave a lease is in force, and that the hosts
// of its nodes have tried to do all that was decided so far; what they failed to do makes the lease degraded.
func (s *Server) applied(l vnet.Lease) bool {
	done := !api.Forming(l)
	err := s.look(func(_ time.Time, b *lease.Book) error {
		for _, host := range l.Mapping.Nodes {
			p, _ := b.Plan(host)
			done = done && s.agents[host].report.Tried >= p.Revision
		}
		return nil
	})
	return err == nil && done
}

func (s *Server) getLease(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := idOf(r, c)
	if err != nil {
		return err
	}
	until, ok := untils[r.URL.Query().Get("until")]
	if !ok {
		return &vnet.FieldError{Path: "until", Problem: "state settled, applied or gone"}
	}
	var l vnet.Lease
	err = s.poll(r, func() (bool, error) {
		l, err = s.leaseOf(id)
		return err != nil || until(s, l), err
	})
	if err != nil {
		return err
	}
	concerns, err := s.concernsNow()
	if err != nil {
		return err
	}
	l.Concerns = concerns.of(l)
	w.Header().Set("ETag", api.Tag(l))
	return answer(w, http.StatusOK, l)
}

// deleteLease ends a lease; its hosts remove it afterwards.
func (s *Server) deleteLease(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := idOf(r, c)
	if err != nil {
		return err
	}
	err = s.changeBy(causeOf(c, "given back"), func(now time.Time, b *lease.Book) error {
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
