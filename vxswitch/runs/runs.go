// Package runs makes the runs of an experiment with the crosspoint-queued
// switch, several at a time.
package runs

import (
	"context"
	"errors"
	"io"
	"sync"

	"sublet/vxswitch/scenario"
	"sublet/vxswitch/sim"
)

// Logs are where packets are written to; nil: nowhere.
type Logs struct{ Departures, Arrivals io.Writer }

func (l Logs) wanted() bool { return l.Departures != nil || l.Arrivals != nil }

// All makes every run of every point, so many at a time, and gives the result
// of each point. Logs are written in the order of points and runs, so with them
// runs come one after the other.
func All(ctx context.Context, e *scenario.Experiment, logs Logs, jobs int) ([]*sim.Result, error) {
	if logs.wanted() {
		jobs = 1
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	outcomes := make([][]*sim.Outcome, len(e.Points))
	var group sync.WaitGroup
	slots := make(chan struct{}, jobs)
	for p := range e.Points {
		outcomes[p] = make([]*sim.Outcome, e.Points[p].Runs)
		for n := range outcomes[p] {
			slots <- struct{}{}
			group.Go(func() {
				defer func() { <-slots }()
				o, err := one(ctx, e, p, n, logs)
				if err != nil {
					cancel(err)
				}
				outcomes[p][n] = o
			})
		}
	}
	group.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var results []*sim.Result
	for p := range e.Points {
		results = append(results, sim.Combine(&e.Points[p].Scenario, outcomes[p]))
	}
	return results, nil
}

// one makes run n of a point.
func one(ctx context.Context, e *scenario.Experiment, point, n int, logs Logs) (*sim.Outcome, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s := &e.Points[point].Scenario
	w := sim.Watch{Stop: func() bool { return ctx.Err() != nil }}
	var writers []*sim.Writer
	if logs.Departures != nil {
		out, err := sim.NewWriter(logs.Departures, s, point, n)
		if err != nil {
			return nil, err
		}
		w.Departed, writers = out.Departed, append(writers, out)
	}
	if logs.Arrivals != nil {
		out, err := sim.NewWriter(logs.Arrivals, s, point, n)
		if err != nil {
			return nil, err
		}
		w.Arrived, writers = out.Arrived, append(writers, out)
	}
	o, err := sim.Run(s, s.Seed+uint64(n), w)
	for _, out := range writers {
		err = errors.Join(err, out.Flush())
	}
	return o, err
}
