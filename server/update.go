package server

import (
	"fmt"
	"net/http"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/vnet"
)

// putLease gives a lease another request, if nobody has changed it since the
// caller read it.
func (s *Server) putLease(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := idOf(r, c)
	if err != nil {
		return err
	}
	var u api.Update
	if err := s.readTerms(w, r, c, &u, &u.Request); err != nil {
		return err
	}
	tag := r.Header.Get("If-Match")
	switch {
	case tag == "":
		return &vnet.FieldError{Path: "If-Match", Problem: "is missing: state the ETag of the lease as it was read"}
	case u.Request.Network != id.Network:
		return &vnet.FieldError{Path: "request.network", Problem: fmt.Sprintf("%q is not %q, which the path names", u.Request.Network, id.Network)}
	case u.Request.Tenant != "" && u.Request.Tenant != id.Tenant:
		return &vnet.FieldError{Path: "request.tenant", Problem: fmt.Sprintf("%q is not %q, which the path names", u.Request.Tenant, id.Tenant)}
	}
	u.Request.Tenant = id.Tenant
	u.Request.Fill()
	if err := u.Request.Check(); err != nil { // bounds the work under the lock
		return err
	}
	updated, err := s.update(c, id, tag, u)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", api.Tag(updated.Lease))
	return answer(w, http.StatusOK, updated)
}

// update changes a lease that still has a tag.
func (s *Server) update(c *call, id vnet.LeaseID, tag string, u api.Update) (updated api.Updated, err error) {
	err = s.changeBy(causeOf(c, ""), func(now time.Time, b *lease.Book) error {
		l, ok := b.Lease(id)
		if !ok {
			return noSuchLease(id)
		}
		if tag != "*" && tag != api.Tag(l) {
			return &api.Problem{Status: http.StatusPreconditionFailed, Detail: fmt.Sprintf(
				"%s has been changed since it was read (it is %s now, not %s): look at it again, then change what it is now", id, api.Tag(l), tag)}
		}
		updated.Lease, updated.Changes, err = b.Revise(now, id, u.Request, keepsOf(c, now, b, id), u.DryRun)
		s.cause.did = changesText(updated.Changes)
		updated.Lease = s.presented(updated.Lease, now)
		return err
	})
	return updated, err
}

// keepsOf says whether another request of a lease keeps its tenant's terms.
func keepsOf(c *call, now time.Time, b *lease.Book, id vnet.LeaseID) lease.Keeps {
	if c.terms == nil {
		return nil
	}
	terms := c.terms.At(b.Without(id))
	return func(r vnet.Request) *vnet.Rejection { return terms.Check(now, nil, r) }
}
