package vxswitch

// guard stands between the engine and a virtual switch's scheduler, which is
// its tenant's choice, and keeps what it does wrong from the neighbours:
//
//   - time it takes beyond PickBudget is charged to the turn of its switch, as
//     the bytes the output could have sent meanwhile;
//   - after maxSlow such calls, or a panic, it is not called any more and its
//     switch is served round robin.
//
// Bounded kinds, which are the provider's, are called without it.
//
// A call that never returns is beyond any guard in one process: a hosting
// switch offers tenants the kinds of package sched, not code of their own.
type guard struct {
	inner  Scheduler
	o      *voutput
	broken bool
	timed  bool
	slow   int
}

// maxSlow is how many slow calls a scheduler has before it is put aside.
const maxSlow = 8

// make asks the kind for the scheduler; a kind that panics leaves none.
func (g *guard) make(kind SchedulerKind, n int) {
	_, bounded := kind.(Bounded)
	g.broken, g.timed = true, !bounded && g.o.v.s.cfg.Clock != nil
	defer g.end(g.begin())
	if g.inner = kind.New(n, g.o); g.inner != nil {
		g.broken = false
	}
}

func (g *guard) begin() Time {
	if !g.timed {
		return 0
	}
	return g.o.v.s.cfg.Clock()
}

// end is deferred by every call.
func (g *guard) end(start Time) {
	if r := recover(); r != nil {
		g.o.faults++
		g.broken = true
	}
	if !g.timed {
		return
	}
	s := g.o.v.s
	if over := s.cfg.Clock() - start - s.cfg.PickBudget; over > 0 {
		g.charge(over)
	}
}

// charge makes the switch pay for over nanoseconds of everybody's time.
func (g *guard) charge(over Time) {
	g.o.faults++
	g.slow++
	g.broken = g.broken || g.slow >= maxSlow
	rate := float64(g.o.v.s.outputs[g.o.phys].line.rate)
	g.o.owed += int(min(float64(over)*rate/8e9, maxOwed))
}

// maxOwed bounds what one slow call costs, so that sums do not overflow.
const maxOwed = 1 << 30

func (g *guard) Wake(i int) {
	if g.broken {
		return
	}
	defer g.end(g.begin())
	g.inner.Wake(i)
}

func (g *guard) Sleep(i int) {
	if g.broken {
		return
	}
	defer g.end(g.begin())
	g.inner.Sleep(i)
}

func (g *guard) Changed(i int) {
	if g.broken {
		return
	}
	defer g.end(g.begin())
	g.inner.Changed(i)
}

func (g *guard) Sent(i, size int) {
	if g.broken {
		return
	}
	defer g.end(g.begin())
	g.inner.Sent(i, size)
}

func (g *guard) Pick(now Time) (i int) {
	i = g.o.fallback()
	if g.broken {
		return i
	}
	defer g.end(g.begin())
	return g.inner.Pick(now)
}

// Retry is Forever for a scheduler that has none.
func (g *guard) Retry() (t Time) {
	r, ok := g.inner.(Retrier)
	if g.broken || !ok {
		return Forever
	}
	t = Forever
	defer g.end(g.begin())
	return r.Retry()
}
