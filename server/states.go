package server

import (
	"time"

	"sublet/lease"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// states are what was told last of leases, hosts and links of the substrate.
type states map[thing]told

type thing struct {
	kind plan.Kind
	key  string
}

type told struct {
	state report.State
	why   string
}

// news notes states, and lists those that differ from what was told last.
func (k states) news(list []report.Sample) (news []report.Sample) {
	for _, s := range list {
		at, now := thing{s.Kind, s.Key}, told{s.State, s.Why}
		if before, known := k[at]; !known || before != now {
			k[at] = now
			news = append(news, s)
		}
	}
	return news
}

// forget drops a lease that the book does not have any more.
func (k states) forget(id vnet.LeaseID) { delete(k, thing{report.KindLease, id.String()}) }

// tell publishes the states that changes of the book made different.
func (s *Server) tell(now time.Time, changes lease.Changes) {
	list := leaseStates(now, changes.Leases)
	if changes.Substrate != nil {
		list = append(list, substrateStates(now, *changes.Substrate)...)
	}
	for _, one := range s.states.news(list) {
		s.feeds.state(one)
	}
	for _, id := range changes.NoLeases {
		s.states.forget(id)
	}
}

// tellAll publishes what is different in a book that was read anew.
func (s *Server) tellAll(now time.Time) {
	for _, one := range s.states.news(presentStates(now, s.book, "")) {
		s.feeds.state(one)
	}
}

// presentStates are of a tenant's leases, or of everything that the book knows.
func presentStates(now time.Time, b *lease.Book, tenant vnet.TenantID) []report.Sample {
	if tenant != "" {
		return leaseStates(now, b.Of(tenant))
	}
	return append(leaseStates(now, b.Leases()), substrateStates(now, b.Substrate())...)
}

func leaseStates(now time.Time, leases []vnet.Lease) (list []report.Sample) {
	for _, l := range leases {
		list = append(list, report.Sample{
			Kind: report.KindLease, Key: l.ID().String(), Lease: l.ID(), At: now, State: report.State(l.State), Why: l.Message,
		})
	}
	return list
}

// substrateStates are the operator's to see: they are of no lease.
func substrateStates(now time.Time, sub vnet.Substrate) (list []report.Sample) {
	for _, h := range sub.Hosts {
		list = append(list, report.Sample{Host: h.Name, Kind: report.KindHost, Key: string(h.Name), At: now, State: upOrDown(!h.Down)})
	}
	for _, l := range sub.Links {
		list = append(list, report.Sample{Kind: report.KindLink, Key: l.Name, At: now, State: upOrDown(l.Works())})
	}
	return list
}

func upOrDown(up bool) report.State {
	if up {
		return report.Up
	}
	return report.Down
}
