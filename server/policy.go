package server

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/lease/policy"
	"sublet/vnet"
)

// SetPolicy puts a policy in force. Leases that exceed it stay; ceilings of
// their nodes change in place.
func (s *Server) SetPolicy(p vnet.Policy) error {
	if err := p.Check(); err != nil {
		return err
	}
	s.policy.Store(&p)
	return s.changeBy(&cause{by: vnet.OperatorName, did: "another policy"}, func(now time.Time, b *lease.Book) error { return b.SetNodeDefaults(now, p.Nodes) })
}

// policyNow is the policy in force. Where it says nothing, the server's own
// limits hold.
func (s *Server) policyNow() vnet.Policy {
	p := *s.policy.Load()
	p.Default = p.Default.Over(vnet.Quota{
		vnet.QuotaLeases: int64(s.limiter.limits.Leases), vnet.QuotaAsks: int64(s.limiter.limits.Admissions),
	})
	return p
}

// terms are a tenant's limits. Whom they concern is looked up in files: not
// under the lock.
func (s *Server) terms(tenant vnet.TenantID) (policy.Terms, error) {
	p := s.policyNow()
	s.people.learn(callerFor, tenant)
	if p.AsksForGroups() {
		var others []vnet.TenantID
		if err := s.look(func(_ time.Time, b *lease.Book) error {
			others = b.Tenants()
			return nil
		}); err != nil {
			return policy.Terms{}, err
		}
		s.people.learn(othersFor, others...)
	}
	return policy.Of(p, s.people.member(tenant), s.people.member), nil
}

// termsFor are the limits of what a caller asks for; nil: the operator has none.
func (s *Server) termsFor(c *call, tenant vnet.TenantID) (*policy.Terms, error) {
	if c.Operator {
		return nil, nil
	}
	terms, err := s.terms(tenant)
	return &terms, err
}

// admissible decides about a request that keeps the terms, as held at an
// instant. What is offered instead keeps them too, and there is room for it.
func admissible(terms *policy.Terms, now time.Time, r vnet.Request, ask func(vnet.Request) (vnet.Quote, error), decide func(vnet.Request) error) error {
	if terms == nil {
		return decide(r)
	}
	if refusal := terms.Check(now, nil, r); refusal != nil {
		if refusal.Offer != nil {
			quote, err := ask(*refusal.Offer)
			other, _ := err.(*vnet.Rejection)
			switch {
			case err == nil:
				refusal.Offers[0].Account = quote.Account
			case other != nil && other.Undecided:
				withdraw(refusal, "")
				refusal.Undecided = true
			default:
				withdraw(refusal, "there is no room for what the quota leaves")
			}
		}
		return refusal
	}
	err := decide(r)
	if refusal, ok := err.(*vnet.Rejection); ok {
		refusal.Offers = slices.DeleteFunc(refusal.Offers, func(o vnet.Offer) bool { return terms.Check(now, nil, o.Request) != nil })
		if len(refusal.Offers) == 0 && refusal.Offer != nil {
			withdraw(refusal, "what would be admitted exceeds the quota")
		} else if len(refusal.Offers) > 0 {
			refusal.Offer, refusal.Changes = &refusal.Offers[0].Request, refusal.Offers[0].Changes
		}
	}
	return err
}

// withdraw takes all offers back.
func withdraw(r *vnet.Rejection, why string) {
	r.Offer, r.Offers, r.Changes, r.Never = nil, nil, nil, why
}

// getPolicy answers the caller's own limits, or everybody's to the operator.
func (s *Server) getPolicy(w http.ResponseWriter, r *http.Request, c *call) error {
	tenants := []vnet.TenantID{c.Tenant}
	query := r.URL.Query()
	switch {
	case query.Has("tenant"):
		tenants[0] = vnet.TenantID(query.Get("tenant"))
		if !c.MayTouch(tenants[0]) {
			return forbidden("only the operator sees other tenants' quotas")
		}
		if err := vnet.CheckName(string(tenants[0])); err != nil {
			return &vnet.FieldError{Path: "tenant", Problem: err.Error()}
		}
	case query.Get("all") == "true":
		if !c.Operator {
			return forbidden("only the operator sees other tenants' quotas")
		}
		tenants = s.everybody()
	}
	views := []api.PolicyView{}
	for _, t := range tenants {
		view, err := s.viewPolicy(t)
		if err != nil {
			return err
		}
		if c.Operator && t == c.Tenant { // who keeps to no limits
			for i := range view.Accounts {
				view.Accounts[i].Quota = vnet.Quota{}
			}
			view.Refused = false
		}
		views = append(views, view)
	}
	return answer(w, http.StatusOK, views)
}

// everybody lists the tenants that have leases or that the policy names.
func (s *Server) everybody() []vnet.TenantID {
	var tenants []vnet.TenantID
	_ = s.look(func(_ time.Time, b *lease.Book) error {
		tenants = b.Tenants()
		return nil
	})
	p := s.policyNow()
	for _, t := range p.Tenants {
		if t.Name != "" {
			tenants = append(tenants, t.Name)
		}
	}
	for _, g := range p.Groups {
		tenants = append(tenants, g.Members...)
	}
	slices.Sort(tenants)
	return slices.Compact(tenants)
}

func (s *Server) viewPolicy(tenant vnet.TenantID) (api.PolicyView, error) {
	terms, err := s.terms(tenant)
	if err != nil {
		return api.PolicyView{}, err
	}
	view := api.PolicyView{Tenant: tenant, Refused: terms.Refused, Nodes: s.policyNow().Nodes}
	err = s.look(func(now time.Time, b *lease.Book) error {
		view.Accounts = terms.Usage(now, b)
		return nil
	})
	return view, err
}

// checkPolicy refuses a policy given with a server that cannot take it.
func checkPolicy(p *vnet.Policy) (vnet.Policy, error) {
	if p == nil {
		return vnet.DefaultPolicy, nil
	}
	if err := p.Check(); err != nil {
		return *p, fmt.Errorf("take on the policy: %w", err)
	}
	return *p, nil
}
