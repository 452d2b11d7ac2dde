package server

import (
	"crypto/rand"
	"net/http"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

// kindWaiting is of events of requests that wait for room.
const kindWaiting = "waiting"

// Bounds of the tenants who are told elsewhere.
const (
	mostNotified          = 10_000
	mostNotifiedOfAccount = 8 // with subordinate users
)

// notifiedOf is whose notices a request is about.
func notifiedOf(r *http.Request, c *call) (vnet.TenantID, error) {
	tenant := vnet.TenantID(r.URL.Query().Get("tenant"))
	if tenant == "" {
		tenant = c.Tenant
	}
	switch {
	case !c.MayTouch(tenant):
		return tenant, forbidden("only the operator sets where others are told")
	case tenant == "":
		return tenant, &vnet.FieldError{Path: "tenant", Problem: "state whose: a certificate is no tenant"}
	}
	if err := vnet.CheckName(string(tenant)); err != nil {
		return tenant, &vnet.FieldError{Path: "tenant", Problem: err.Error()}
	}
	return tenant, nil
}

// getNotify says where a tenant is told of events, and what became of it.
func (s *Server) getNotify(w http.ResponseWriter, r *http.Request, c *call) error {
	tenant, err := notifiedOf(r, c)
	if err != nil {
		return err
	}
	var view api.Notify
	err = s.look(func(_ time.Time, b *lease.Book) error {
		view.Notify, _ = b.Notify(tenant)
		return nil
	})
	if err != nil {
		return err
	}
	view.Tenant, view.Secret = tenant, ""
	view.Lost, view.Problem = s.notifier.became(tenant)
	return answer(w, http.StatusOK, view)
}

// putNotify sets where a tenant is told. What signs is made anew, and said this once.
func (s *Server) putNotify(w http.ResponseWriter, r *http.Request, c *call) error {
	tenant, err := notifiedOf(r, c)
	if err != nil {
		return err
	}
	if err := s.asks(c, tenant); err != nil {
		return err
	}
	var ask api.NotifyAsk
	if err := s.decode(w, r, c, &ask); err != nil {
		return err
	}
	n := vnet.Notify{Tenant: tenant, URL: ask.URL, Mail: ask.Mail}
	if err := n.Check(); err != nil {
		return err
	}
	if n.Mail != "" && s.notifier.config.Sendmail == "" {
		return &vnet.FieldError{Path: "mail", Problem: "this server sends no mail: sublet serve --sendmail lets it"}
	}
	if n.URL != "" {
		n.Secret = rand.Text()
	}
	err = s.changeBy(causeOf(c, ""), func(_ time.Time, b *lease.Book) error {
		if _, known := b.Notify(tenant); !known && !c.Operator {
			if err := roomToNotify(b.Notifies(), trust.AccountOf(tenant)); err != nil {
				return err
			}
		}
		b.SetNotify(n)
		return nil
	})
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return answer(w, http.StatusOK, api.Notify{Notify: n})
}

// roomToNotify refuses one more who is told elsewhere.
func roomToNotify(list []vnet.Notify, account vnet.TenantID) error {
	own := 0
	for _, n := range list {
		if trust.AccountOf(n.Tenant) == account {
			own++
		}
	}
	switch {
	case len(list) >= mostNotified:
		return tooMany("%d tenants are told elsewhere, the most there can be", mostNotified)
	case own >= mostNotifiedOfAccount:
		return tooMany("%d users of %s are told elsewhere, the most there can be", mostNotifiedOfAccount, account)
	}
	return nil
}

// deleteNotify ends that a tenant is told elsewhere.
func (s *Server) deleteNotify(w http.ResponseWriter, r *http.Request, c *call) error {
	tenant, err := notifiedOf(r, c)
	if err != nil {
		return err
	}
	err = s.changeBy(causeOf(c, ""), func(_ time.Time, b *lease.Book) error {
		if !b.DropNotify(tenant) {
			return notFound("%s is told nowhere", tenant)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, api.Notify{Notify: vnet.Notify{Tenant: tenant}})
}
