package lease

import (
	"slices"
	"time"

	"sublet/embed"
	"sublet/vnet"
)

// View is what decisions read of a book, as it was at an instant. Others may
// change the book meanwhile: what was decided holds once Commit takes it.
type View struct {
	resources
	prices    vnet.Prices
	mostMoves int
	movable   func(vnet.Window) []*entry
}

// Effort bounds the work of a decision: see embed.Effort.
type Effort = embed.Effort

// Work of a decision with its offers, in processor time as embed counts it:
// what is not decided by then is refused as undecided. Nearly all are decided
// with QuickBudget.
const (
	Budget      = 4 * time.Second
	QuickBudget = 40 * time.Millisecond
)

// NewEffort allows a budget; see embed.Effort for rest.
func NewEffort(budget time.Duration, rest func() bool) *Effort { return embed.NewEffort(budget, rest) }

// View is the book at a time, for decisions while others change it. They read
// more of the book, as it then is, by locked, which runs a function while
// nothing changes the book.
func (b *Book) View(now time.Time, locked func(read func())) *View {
	v := b.view(now)
	v.calendar, v.solver = b.calendar.Clone(), nil
	v.movable = func(w vnet.Window) (copies []*entry) {
		locked(func() { copies = copied(b.movable(w)) })
		return copies
	}
	return v
}

// view is the book as it is now, for a decision during which nothing changes.
func (b *Book) view(now time.Time) *View {
	v := &View{resources: b.resources, prices: b.Prices, mostMoves: b.MostMoves, movable: b.movable}
	v.now = now
	return v
}

// Now is the instant of the view.
func (v *View) Now() time.Time { return v.now }

// with is the view for one decision, with an effort and a solver that no other
// decision uses meanwhile.
func (v *View) with(s *Solver, effort *Effort) *View {
	decides := *v
	decides.solver, decides.effort = s, effort
	return &decides
}

// movable lists leases that may make room for one in a window, at most
// mostReleased of them, in order of admission. None while others are moving:
// what these leave is not free yet.
func (b *Book) movable(window vnet.Window) []*entry {
	if b.MostMoves == 0 || slices.ContainsFunc(b.active, (*entry).moving) {
		return nil
	}
	var list []*entry
	for _, e := range b.live {
		if len(list) == mostReleased {
			break
		}
		if e.mayMove() && e.Window.Overlaps(window) {
			list = append(list, e)
		}
	}
	return list
}

// copied copies entries: what they point to is replaced, never changed.
func copied(list []*entry) []*entry {
	copies := make([]*entry, len(list))
	for i, e := range list {
		c := *e
		copies[i] = &c
	}
	return copies
}
