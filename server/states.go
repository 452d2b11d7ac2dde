package server

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
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
func (k states) forget(id vnet.LeaseID) {
	maps.DeleteFunc(k, func(at thing, _ told) bool {
		return at == thing{report.KindLease, id.String()} || strings.HasPrefix(at.key, id.String()+" ")
	})
}

// tell publishes the states that changes of the book made different.
func (s *Server) tell(now time.Time, changes lease.Changes) {
	list := leaseStates(now, changes.Leases)
	if changes.Substrate != nil {
		list = append(list, substrateStates(now, *changes.Substrate)...)
	}
	for _, one := range s.states.news(list) {
		s.feeds.state(one)
		s.happens(s.cause.of(vnet.Happening{Time: now, Lease: one.Lease, Kind: string(one.Kind), What: one.Key, State: string(one.State), Why: one.Why}))
	}
	if frees(changes) {
		s.freed.Store(true)
	}
	s.notifier.learn(changes.Notify, changes.NoNotify, changes.Substrate)
	s.tellCommands(now)
	s.tellOf(now, changes.Leases)
	if s.proves() {
		s.proving.news.tell(changes.Leases, changes.NoLeases, changes.Substrate)
	}
	for _, id := range changes.NoLeases {
		s.states.forget(id)
	}
}

// tellCommands writes down what somebody asked for by command.
func (s *Server) tellCommands(now time.Time) {
	if s.cause == nil {
		return
	}
	for _, h := range s.cause.also {
		h.Time = now
		s.happens(s.cause.of(h))
	}
	s.cause.also = nil
}

// tellOf writes down what else became of leases: what was repaired, moved, changed.
func (s *Server) tellOf(now time.Time, leases []vnet.Lease) {
	for _, l := range leases {
		note := func(kind plan.Kind, state, why string) {
			at := thing{kind, l.ID().String() + " " + strconv.FormatUint(l.Serial, 10)}
			before, known := s.states[at]
			is := told{report.State(state), why}
			s.states[at] = is
			if state != "" && before != is && (known || kind != "change" && kind != "stage") {
				s.happens(s.cause.of(vnet.Happening{Time: now, Lease: l.ID(), Kind: string(kind), What: l.ID().String(), State: state, Why: why}))
			}
		}
		if l.Repairs != nil && now.Sub(l.Repairs.Time) < oldRepair {
			note("repair", "repaired", fmt.Sprintf("%s (%d in all)", l.Repairs.Last, l.Repairs.Count))
		}
		if l.Move != nil {
			goes := vnet.Disturbance{Nodes: vnet.Relocations(l.Request.Union(), l.Move.From, l.Mapping)}
			note("move", string(l.Move.Phase), goes.NodesWords())
		} else {
			note("move", "", "")
		}
		if l.Stage >= 0 {
			note("stage", "begun", l.Request.Stages[l.Stage].Name)
		} else {
			note("stage", "", "")
		}
		note("change", "revision "+strconv.FormatUint(l.Revision, 10), l.Undone)
	}
}

// tellAll publishes what is different in a book that was read anew.
func (s *Server) tellAll(now time.Time) {
	s.proving.news.tellAll(s.book)
	sub := s.book.Substrate()
	s.notifier.forget()
	s.notifier.learn(s.book.Notifies(), nil, &sub)
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
