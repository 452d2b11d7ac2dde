package embed

import (
	"math"
	"time"
)

// Effort is the work that the embeddings of one answer share, counted in the
// units of Options.Budget, so that the same input ends at the same place on
// every machine. The zero value is unlimited. It is not safe for concurrent use.
type Effort struct {
	// Rest, if set, is called whenever some milliseconds of work were done:
	// the caller may let others work meanwhile. False: nobody wants the answer
	// any more, and everything ends as if all work had been spent.
	Rest func() bool

	spent, rested int
	limit         int // 0: none
	short, gone   bool
}

// restEvery is the work between two calls of Effort.Rest: about 2 ms.
const restEvery = 2 * workPerMillisecond

// NewEffort allows so much processor time, counted in work.
func NewEffort(budget time.Duration, rest func() bool) *Effort {
	return &Effort{Rest: rest, limit: Options{Budget: budget}.work()}
}

// Spend counts work done.
func (e *Effort) Spend(units int) {
	e.spent += units
	if e.spent-e.rested < restEvery {
		return
	}
	e.rested = e.spent
	if e.Rest != nil && !e.gone {
		e.gone = !e.Rest()
	}
}

// Over says that no work is left. Who asks and leaves out something for it
// makes the answer Short.
func (e *Effort) Over() bool {
	over := e.gone || e.limit > 0 && e.spent >= e.limit
	e.short = e.short || over
	return over
}

// Short says that something was left out because there was no work left for it.
func (e *Effort) Short() bool { return e.short }

// Renew allows the whole budget once more.
func (e *Effort) Renew() { e.spent, e.rested, e.short = 0, 0, false }

// Gone says that Rest ended the work.
func (e *Effort) Gone() bool { return e.gone }

// Part leaves only the n-th part of what is left until done is called.
func (e *Effort) Part(n int) (done func()) {
	whole := e.limit
	if whole > 0 {
		e.limit = e.spent + max(whole-e.spent, 0)/n
	}
	return func() { e.limit = whole }
}

// left is the work that may still be done.
func (e *Effort) left() int {
	switch {
	case e.gone:
		return 0
	case e.limit == 0:
		return math.MaxInt / 2
	}
	return max(e.limit-e.spent, 0)
}
