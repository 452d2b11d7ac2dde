package lease

import (
	"slices"

	"sublet/plan"
	"sublet/vnet"
)

// Machines that say so are copied while they run, with the links of their new hosts
// beside those that they have, as routers move (standby.go). What is left in the end is
// copied while they stand still. From then on the machine of the former host goes on only
// if the move is taken back, and the other one only once the book says that it has come:
// that is one write, so of the two never more than one runs.

// goesLive says whether a move is one of machines that run meanwhile, and of nothing that
// cannot be there twice or is copied itself.
func (b *Book) goesLive(e *entry, from, to vnet.Mapping) bool {
	names := carried(e.Request, from, to)
	for _, n := range e.Request.Union().Nodes {
		if slices.Contains(names, n.Name) && n.Movable != vnet.MoveLive {
			return false
		}
	}
	return len(names) > 0 && len(told(e.Request, from, to)) == 0 && gentle(e.Request, from, to, names...) &&
		e.Paused == nil && e.onHosts() && b.stillValid(e.Lease)
}

// setLive says at both hosts of each machine that is copied while it runs what becomes of
// it there.
func (e *entry) setLive() {
	if !e.moving() || !e.Move.Live {
		return
	}
	for _, name := range carried(e.Request, e.Move.From, e.Mapping) {
		key := plan.Namespace(e.ID(), name)
		e.eachSetup(e.Move.From.Nodes[name], key, func(s *plan.Setup) { s.Live, s.Carried = plan.LiveLeaves, !e.copying() })
		if e.copying() {
			e.eachSetup(e.Mapping.Nodes[name], key, func(s *plan.Setup) { s.Live, s.Carried = plan.LiveComes, true })
		}
	}
}

// eachSetup changes what a host is to give a node.
func (e *entry) eachSetup(host vnet.HostID, key string, change func(*plan.Setup)) {
	for i, item := range e.parts[host] {
		if s, ok := item.(plan.Setup); ok && s.Key() == key {
			change(&s)
			e.parts[host][i] = s
		}
	}
}

// Arrived lists the machines of a lease that have come to their new hosts, where they may
// go on: the move is not taken back any more.
func (b *Book) Arrived(id vnet.LeaseID) (list []Copy) {
	e, ok := b.entries[id]
	if !ok || !e.moving() || !e.Move.Live || e.copying() {
		return nil
	}
	for _, name := range carried(e.Request, e.Move.From, e.Mapping) {
		list = append(list, Copy{id, e.Serial, name, e.Move.From.Nodes[name], e.Mapping.Nodes[name], CopyMachine})
	}
	return list
}
