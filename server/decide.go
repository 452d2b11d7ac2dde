package server

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"sublet/lease"
	"sublet/trust"
)

// deciders bound what deciding takes from everybody else. Of one tenant, or the
// operator, one request is decided at a time. So a lane, which serves in the
// order of arrival, serves tenants in turn. The first lane gives each a budget
// that suffices for nearly all. What it does not suffice for is decided anew
// in the second lane, at the side of it: nobody waits for another's large
// question longer than a slice of its work.
type deciders struct {
	lanes      []lane
	processors chan struct{} // on which decisions run, handed on in the order of arrival

	mu     sync.Mutex
	queues map[string]*queue // by who asks
}

// lane is where requests are decided with a budget.
type lane struct {
	budget  time.Duration
	solvers chan *lease.Solver // that are free
}

// queue is the requests of one who asks.
type queue struct {
	turn  chan struct{} // taken by the one that is being decided
	asked int           // that one and those that wait
}

// mostAsked is how many requests of a tenant are decided or wait for it.
const mostAsked = 32

// mostDeciders bounds the memory of solvers.
const mostDeciders = 4

// newDeciders leaves one processor to everybody else, where there are several.
func newDeciders() *deciders {
	n := min(max(runtime.GOMAXPROCS(0)-1, 1), mostDeciders)
	d := &deciders{processors: make(chan struct{}, n), queues: make(map[string]*queue)}
	for _, budget := range []time.Duration{lease.QuickBudget, lease.Budget} {
		l := lane{budget: budget, solvers: make(chan *lease.Solver, n)}
		for range n {
			l.solvers <- new(lease.Solver)
		}
		d.lanes = append(d.lanes, l)
	}
	for range n {
		d.processors <- struct{}{}
	}
	return d
}

// deciding is one pass of deciding a request.
type deciding struct {
	solver *lease.Solver
	effort *lease.Effort
	last   bool // there is no other pass with more effort
}

// decide calls do when it is the caller's turn, and again with more effort when
// what it had was too short. It ends when ctx does.
func (d *deciders) decide(ctx context.Context, c trust.Caller, do func(deciding) error) error {
	leave, err := d.enter(ctx, c)
	if err != nil {
		return err
	}
	defer leave()
	for i, l := range d.lanes {
		last := i == len(d.lanes)-1
		short, err := d.run(ctx, l, last, do)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !short || last {
			return err
		}
	}
	return nil
}

// enter waits until no other request of the same caller is being decided.
func (d *deciders) enter(ctx context.Context, c trust.Caller) (leave func(), err error) {
	who := string(c.Account)
	if c.Operator {
		who = "/operator" // no tenant's name
	}
	d.mu.Lock()
	q, ok := d.queues[who]
	if !ok {
		q = &queue{turn: make(chan struct{}, 1)}
		d.queues[who] = q
	}
	if q.asked >= mostAsked && !c.Operator {
		d.mu.Unlock()
		return nil, tooMany("%d requests of %s wait to be decided, the most allowed", q.asked, c.Account)
	}
	q.asked++
	d.mu.Unlock()
	left := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if q.asked--; q.asked == 0 {
			delete(d.queues, who)
		}
	}
	select {
	case q.turn <- struct{}{}:
		return func() { <-q.turn; left() }, nil
	case <-ctx.Done():
		left()
		return nil, ctx.Err()
	}
}

// run makes one pass in a lane; short: the effort did not suffice.
func (d *deciders) run(ctx context.Context, l lane, last bool, do func(deciding) error) (short bool, err error) {
	var solver *lease.Solver
	select {
	case solver = <-l.solvers:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() {
		if defect := recover(); defect != nil {
			solver = new(lease.Solver) // the other may be in disorder
			err = fmt.Errorf("defect in a decision: %v\n%s", defect, debug.Stack())
		}
		l.solvers <- solver
	}()
	<-d.processors
	defer func() { d.processors <- struct{}{} }()
	effort := lease.NewEffort(l.budget, func() bool { return d.rest(ctx) })
	err = do(deciding{solver, effort, last})
	return effort.Short(), err
}

// rest lets the decision that has waited longest go on, and answers that wait
// for a processor; false: nobody waits for this one any more.
func (d *deciders) rest(ctx context.Context) bool {
	d.processors <- struct{}{}
	runtime.Gosched()
	<-d.processors
	return ctx.Err() == nil
}
