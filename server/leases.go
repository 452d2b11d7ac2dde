package server

import (
	"net/http"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/vnet"
)

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
	if !c.MayTouch(id.Tenant) {
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

// untils are the conditions that ?until= can name.
var untils = map[string]func(vnet.Lease) bool{
	"":        func(vnet.Lease) bool { return true },
	"settled": api.Settled,
	"gone":    api.Gone,
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
	w.Header().Set("ETag", api.Tag(l))
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
