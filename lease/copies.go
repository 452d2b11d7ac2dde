package lease

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// Nodes that keep what they write move to other hosts with it, if they say so. First
// their programs are ended where they are, and the new hosts get the nodes without links
// and without programs. When all hosts have that, their files are copied. Who copies is
// not the book's matter: it says what is to be copied, and is told the outcome. When all
// have come the old nodes go, with their files, and then the new ones begin. Until then
// everything else of the lease is where it was, and the move can be taken back: the nodes
// begin anew where they were.

// Copied things, beside the files that nodes keep: what the daemons of a router have
// learned, and what an OpenFlow switch was told and has counted.
const (
	CopyFiles  = ""
	CopyRoutes = "routes"
	CopyTables = "tables"
	// CopyMachine is of a machine with its disk, which runs meanwhile.
	CopyMachine = "machine"
)

// Copy is what is to be copied between hosts of a node, router or switch.
type Copy struct {
	Lease  vnet.LeaseID
	Serial uint64
	Node   string
	From   vnet.HostID
	To     vnet.HostID
	What   string // CopyFiles, CopyRoutes, CopyTables or CopyMachine
}

// carried are the nodes that a move of a lease takes elsewhere with what they keep.
func carried(r vnet.Request, from, to vnet.Mapping) (names []string) {
	for _, n := range r.Union().Nodes {
		if n.Keeps() && from.Nodes[n.Name] != to.Nodes[n.Name] {
			names = append(names, n.Name)
		}
	}
	return names
}

// copying says whether what nodes keep is on its way.
func (e *entry) copying() bool { return e.moving() && e.Move.Phase == vnet.MoveCopies }

// owed are the nodes of which something must be copied before a move goes on.
func (e *entry) owed() []string {
	switch {
	case e.copying():
		return carried(e.Request, e.Move.From, e.Mapping)
	case e.moving() && e.Move.Phase == vnet.MovePrepares:
		return told(e.Request, e.Move.From, e.Mapping)
	}
	return nil
}

// owes is what must be copied of one of them.
func (e *entry) owes(name string) string {
	if e.copying() && e.Move.Live {
		return CopyMachine
	}
	if e.copying() {
		return CopyFiles
	}
	if _, isSwitch := e.Request.Union().Switch(name); isSwitch {
		return CopyTables
	}
	return CopyRoutes
}

// lacksCopies says whether some of it has not come.
func (e *entry) lacksCopies() bool {
	return slices.ContainsFunc(e.owed(), func(name string) bool { return !slices.Contains(e.Move.Copied, name) })
}

// Copies lists what is to be copied now: their hosts have ended what runs there, or
// have the new router.
func (b *Book) Copies() (list []Copy) {
	for _, e := range b.active {
		if !e.lacksCopies() || len(b.rollout.Missing(e.ID(), e.allHosts())) > 0 {
			continue
		}
		for _, name := range e.owed() {
			if !slices.Contains(e.Move.Copied, name) {
				list = append(list, Copy{e.ID(), e.Serial, name, e.Move.From.Nodes[name], e.Mapping.Nodes[name], e.owes(name)})
			}
		}
	}
	return list
}

// ofCopy finds the lease of a copy that is still wanted.
func (b *Book) ofCopy(c Copy) (*entry, error) {
	e, ok := b.entries[c.Lease]
	if !ok || e.Serial != c.Serial || !slices.Contains(e.owed(), c.Node) || c.What != e.owes(c.Node) || e.Mapping.Nodes[c.Node] != c.To || e.Move.From.Nodes[c.Node] != c.From {
		return nil, fmt.Errorf("copy what %s of %s has: %w: it is not to be moved any more", c.Node, c.Lease, ErrConflict)
	}
	return e, nil
}

// CopyGoesOn takes in that more of a copy has come, so that its move is not taken back
// for want of progress. The error wraps ErrConflict if it is not wanted any more.
func (b *Book) CopyGoesOn(now time.Time, c Copy) error {
	e, err := b.ofCopy(c)
	if err == nil {
		e.copied = now
	}
	return err
}

// Copied takes in that what a node keeps is where it goes to.
func (b *Book) Copied(now time.Time, c Copy) error {
	e, err := b.ofCopy(c)
	if err != nil {
		return err
	}
	if !slices.Contains(e.Move.Copied, c.Node) {
		m := *e.Move
		m.Copied = append(slices.Clone(m.Copied), c.Node)
		e.Move, e.copied = &m, now
		b.touch(e)
	}
	return b.Tick(now)
}

// CopyFailed takes a move back whose files cannot be copied. One whose machines cannot be
// copied while they run goes on with them stopped.
func (b *Book) CopyFailed(now time.Time, c Copy) error {
	e, err := b.ofCopy(c)
	if err != nil {
		return err
	}
	if e.Move.Live {
		e.setMovePhase(vnet.MoveCopies, now)
		e.Move.Live, e.parts, b.stale = false, nil, true
		b.touch(e)
		return b.Tick(now)
	}
	return errors.Join(b.rollBackMove(now, e), b.Tick(now))
}

// waitsSince is when the hosts of a moving lease, or those who copy, last got on.
func (e *entry) waitsSince() time.Time {
	if e.copying() && e.copied.After(e.Move.Since) {
		return e.copied
	}
	return e.Move.Since
}

// movePhase is how a move of a running lease begins: what is new is there before what is
// old goes, if that can be.
func movePhase(r vnet.Request, from, to vnet.Mapping) vnet.MovePhase {
	switch {
	case len(carried(r, from, to)) > 0:
		return vnet.MoveCopies
	case gentle(r, from, to):
		return vnet.MovePrepares
	}
	return vnet.MoveLeaves
}

// compileCopies notes what each host shall have of a lease whose nodes' files are on
// their way: what it had, and of the new nodes no more than that they are there.
func (b *Book) compileCopies(e *entry) error {
	was, is := e.beforeMove(), e.Lease
	was.Move, is.Move, was.State, is.State = nil, nil, vnet.Deploying, vnet.Deploying
	goes := make(map[string]bool)
	for _, name := range carried(e.Request, e.Move.From, e.Mapping) {
		goes[plan.Namespace(e.ID(), name)] = true
	}
	for i, l := range []vnet.Lease{was, is} {
		hosts, err := b.compiler().Compile([]vnet.Lease{l})
		if err != nil {
			return err
		}
		for _, name := range e.allHosts() {
			items := slices.DeleteFunc(hosts[name].Items(), func(item plan.Item) bool {
				return item.Kind() == plan.KindReach || i > 0 && !ofNodes(item, goes)
			})
			for j, item := range items {
				if s, ok := item.(plan.Setup); ok && goes[s.Key()] {
					s.Carried = true
					items[j] = s
				}
			}
			e.parts[name] = merged(e.parts[name], items)
		}
	}
	return nil
}

// ofNodes says whether an item is one without which nodes are not there.
func ofNodes(item plan.Item, nodes map[string]bool) bool {
	switch item.Kind() {
	case plan.KindNames:
		return true
	case plan.KindVNode, plan.KindSetup:
		return nodes[item.Key()]
	}
	return false
}

// displaced says whether a lease cannot be where it is, or where it is going to.
func (b *Book) displaced(e *entry) bool {
	switch {
	case e.Lost != nil || !b.stillValid(e.Lease):
		return true
	case e.copying():
		return !b.haveFiles(e)
	}
	return e.moving() && !b.stillValid(e.beforeMove())
}

// haveFiles says whether the hosts work that have what is to be copied.
func (b *Book) haveFiles(e *entry) bool {
	working := b.index(b.working)
	return !slices.ContainsFunc(carried(e.Request, e.Move.From, e.Mapping), func(name string) bool {
		_, ok := working.HostOf(string(e.Move.From.Nodes[name]))
		return !ok && !slices.Contains(e.Move.Copied, name)
	})
}

// abandon ends a move of a displaced lease. What was moved on account of a failure, with
// its files not copied, goes back to where these are.
func (b *Book) abandon(now time.Time, e *entry) error {
	if e.copying() {
		return b.rollBackMove(now, e)
	}
	if e.moving() { // the old paths or the new ones do not work: it cannot be rolled back
		e.setMovePhase(vnet.MoveLeaves, now)
		e.former, e.parts, b.stale = nil, nil, true
	}
	return nil
}

// bookFormer books for a lease whose move is taken back what it had. What does not work
// any more is lost.
func (b *Book) bookFormer(e *entry) error {
	if !e.copying() || b.stillValid(e.beforeMove()) {
		return b.calendar.Book(e.former...)
	}
	e.former = nil
	return nil
}
