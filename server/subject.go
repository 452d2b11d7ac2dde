package server

import (
	"slices"
	"sync"
	"time"

	"sublet/lease"
	"sublet/vnet"
)

// proofNews is what became different in the book since proofs looked last. The
// book's lock is held when it is told, so it waits for nothing.
type proofNews struct {
	mu     sync.Mutex
	anew   bool                         // the book was read anew: other leases are gone
	leases map[vnet.LeaseID]*vnet.Lease // nil: gone
	sub    *vnet.Substrate              // nil: unchanged
}

// tell notes changes of the book.
func (n *proofNews) tell(leases []vnet.Lease, gone []vnet.LeaseID, sub *vnet.Substrate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.leases == nil {
		n.leases = make(map[vnet.LeaseID]*vnet.Lease)
	}
	for i := range leases {
		n.leases[leases[i].ID()] = &leases[i]
	}
	for _, id := range gone {
		n.leases[id] = nil
	}
	if sub != nil {
		n.sub = sub
	}
}

// tellAll notes a book that was read anew.
func (n *proofNews) tellAll(b *lease.Book) {
	sub := b.Substrate()
	n.mu.Lock()
	n.anew, n.leases = true, nil
	n.mu.Unlock()
	n.tell(b.Active(), nil, &sub)
}

// learn brings what is to be judged to what the book has, and says whether
// anything is different.
func (p *proving) learn() bool {
	n := &p.news
	n.mu.Lock()
	anew, leases, sub := n.anew, n.leases, n.sub
	n.anew, n.leases, n.sub = false, nil, nil
	n.mu.Unlock()
	if anew {
		clear(p.about)
	}
	if sub != nil {
		p.down, p.stated, p.measured = downElements(*sub), latenciesOf(*sub), measuredOf(*sub)
		for id, a := range p.about {
			p.about[id] = p.subject(a.Lease)
		}
	}
	for id, l := range leases {
		if delete(p.about, id); l != nil && l.State != vnet.Ended && l.State != vnet.Booked {
			p.about[id] = p.subject(*l)
		}
	}
	return anew || sub != nil || len(leases) > 0
}

// subject is a lease with the links on whose promises nothing bears but their
// rate: not those that are down or impaired as asked. One that is being built is
// not judged, and keeps what is known of it.
func (p *proving) subject(l vnet.Lease) *subject {
	a := &subject{Lease: l, links: make(map[string]*vnet.VirtualLink), down: make(map[string]string)}
	top := l.Topology()
	for _, link := range top.Promised(l.Request.Chains) {
		segments := []vnet.VirtualLink{link}
		if link.Chain != "" {
			segments = top.ChainLinks(link.Chain)
		}
		if !slices.ContainsFunc(segments, func(s vnet.VirtualLink) bool {
			return s.Down || s.Impair != [2]vnet.Impairment{} || len(l.Mapping.Splits[s.Name]) > 0
		}) {
			a.links[link.Name] = &link
			p.isDown(a, link.Name, segments)
		}
	}
	return a
}

// isDown notes an element of the substrate that is down of those that carry a promise.
func (p *proving) isDown(a *subject, promise string, segments []vnet.VirtualLink) {
	for _, s := range segments {
		for _, element := range a.Mapping.Links[s.Name] {
			if p.down[element] {
				a.down[promise] = "substrate link " + element
			}
		}
	}
}

// carries says whether what a host counted at an end of a link, 0 where frames enter, is
// of what carries them. While a router or switch is in two places, one may stand by.
func (a *subject) carries(way *provedWay, end int, now endNow) bool {
	if a == nil || a.Move == nil || a.Move.Form != nil || a.links[way.of.link] == nil {
		return true
	}
	node := a.links[way.of.link].Ends[(int(way.of.direction)+end)%2]
	from, to := a.Move.From.Nodes[node], a.Mapping.Nodes[node]
	switch was := way.ends[end]; {
	case from == to:
		return true
	case a.Move.Phase == vnet.MovePrepares, a.Move.Phase == vnet.MoveCopies:
		return now.host != to
	case a.Move.Phase == vnet.MoveSwitches: // either: what carries more
		return was.host == now.host || now.at.Sub(was.at) >= fresh || now.Packets >= was.Packets
	}
	return now.host != from
}

// trouble is what is known to be wrong with a link.
func (a *subject) trouble(link string, now time.Time) string {
	switch {
	case a.down[link] != "":
		return a.down[link] + " is down"
	case a.Repairs != nil && now.Sub(a.Repairs.Time) < oldRepair:
		return "repaired a moment ago: " + a.Repairs.Last
	}
	return a.Message
}

// measuredOf is what hosts were found to do.
func measuredOf(sub vnet.Substrate) map[vnet.HostID]vnet.Measurement {
	all := make(map[vnet.HostID]vnet.Measurement)
	for _, h := range sub.Hosts {
		all[h.Name] = h.Measurement
	}
	return all
}

// downElements are the substrate's links that do not work.
func downElements(sub vnet.Substrate) map[string]bool {
	down := make(map[string]bool)
	for _, l := range sub.Links {
		down[l.Name] = !l.Works()
	}
	return down
}

// cleanJournal removes what is too old, once a day.
func (s *Server) cleanJournal() {
	if now := s.now(); s.journal.due(now) {
		_ = s.look(func(_ time.Time, b *lease.Book) error { // else the next second
			lives := make(map[string]bool)
			for _, l := range b.Leases() {
				lives[proofName(l.ID(), l.Serial)] = l.State != vnet.Ended
			}
			s.journal.clean(now, func(name string) bool { return lives[name] })
			return nil
		})
	}
}

// stops says whether a node at an end of a link is being taken to another host, and stands
// still meanwhile, as its owner allows.
func (a *subject) stops(l *vnet.VirtualLink) bool {
	return a.Move != nil && !a.Move.Live && slices.ContainsFunc(l.Ends[:], func(name string) bool {
		n, ok := a.Request.Union().Node(name)
		return ok && n.Movable != "" && a.Move.From.Nodes[name] != "" && a.Move.From.Nodes[name] != a.Mapping.Nodes[name]
	})
}
