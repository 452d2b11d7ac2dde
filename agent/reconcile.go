package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// DefaultWorkers do independent steps at once; the kernel's network lock
// lets little more than this through.
const DefaultWorkers = 2

// deleting is how many deletions one worker has under way. They mostly wait
// for grace periods of the kernel, which all that wait at once share: a
// thousand links and nodes go in 3 s this way, in 20 s one by one.
const deleting = 32

// passes bounds how often one reconciliation reads the host again after an
// error: the error of a reply says nothing of what was done.
const passes = 3

// Result of one reconciliation.
type Result struct {
	Steps  int           // done
	Done   []plan.Step   // the same, in no order
	Errors report.Errors // by kind and key: what could not be done, or read
	Took   time.Duration
	Looked time.Duration // of Took, to read what there is, last
}

// Reconcile changes the host until it matches want or nothing more succeeds.
func Reconcile(ctx context.Context, want plan.Host, parts []Part, workers int) Result {
	began := time.Now()
	var total Result
	for range passes {
		r := pass(ctx, want, parts, workers)
		total.Steps += r.Steps
		total.Done = append(total.Done, r.Done...)
		total.Errors, total.Looked = r.Errors, r.Looked
		if len(r.Errors) == 0 || ctx.Err() != nil {
			break
		}
	}
	total.Took = time.Since(began)
	return total
}

// Observe reads what the host has of all parts. What a part cannot look at is
// noted as unknown, and does not keep the others from being read.
func Observe(ctx context.Context, want plan.Host, parts []Part) plan.Host {
	have := plan.Host{Host: want.Host}
	for _, p := range parts {
		if err := p.Observe(ctx, &have); err != nil {
			have.Unseen(err, vnet.LeaseID{}, p.Kinds()...)
		}
	}
	return have
}

func pass(ctx context.Context, want plan.Host, parts []Part, workers int) Result {
	began := time.Now()
	have := Observe(ctx, want, parts)
	looked := time.Since(began)
	r := runner{ctx: ctx, parts: byKind(parts), workers: workers}
	for _, u := range have.Unknown {
		r.errors = append(r.errors, report.Unread(u))
	}
	for _, group := range groups(plan.Diff(want, have)) {
		r.do(group)
	}
	r.errors.Sort()
	return Result{Steps: len(r.done), Done: r.done, Errors: r.errors, Looked: looked}
}

func byKind(parts []Part) map[plan.Kind]Part {
	kinds := make(map[plan.Kind]Part)
	for _, p := range parts {
		for _, k := range p.Kinds() {
			kinds[k] = p
		}
	}
	return kinds
}

// groups cuts steps into runs of one operation on one kind: these touch
// different items and may be done in any order.
func groups(steps []plan.Step) [][]plan.Step {
	var runs [][]plan.Step
	for i, s := range steps {
		if i == 0 || s.Op != steps[i-1].Op || s.Item.Kind() != steps[i-1].Item.Kind() {
			runs = append(runs, nil)
		}
		last := len(runs) - 1
		runs[last] = append(runs[last], s)
	}
	return runs
}

// runner does groups of steps, several steps at a time.
type runner struct {
	ctx     context.Context
	parts   map[plan.Kind]Part
	workers int

	mu     sync.Mutex
	done   []plan.Step
	errors report.Errors
}

func (r *runner) do(group []plan.Step) {
	queue := make(chan plan.Step)
	var wg sync.WaitGroup
	for range min(r.hands(group[0].Op), len(group)) {
		wg.Go(func() {
			for s := range queue {
				r.step(s)
			}
		})
	}
	for _, s := range group {
		queue <- s
	}
	close(queue)
	wg.Wait()
}

// hands is how many steps are done at once; a single worker does one of any kind.
func (r *runner) hands(op plan.Op) int {
	if op == plan.Delete && r.workers > 1 {
		return r.workers * deleting
	}
	return max(r.workers, 1)
}

func (r *runner) step(s plan.Step) {
	err := r.ctx.Err()
	if part, ok := r.parts[s.Item.Kind()]; err == nil && ok {
		err = part.Do(r.ctx, s)
	} else if err == nil {
		err = fmt.Errorf("no part does %s", s.Item.Kind())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.errors = append(r.errors, report.NewItemError(s, err))
		return
	}
	r.done = append(r.done, s)
}
