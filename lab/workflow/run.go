package workflow

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"sublet/lab/testbed"
	"sublet/vnet"
)

// one is one run of the application, in its own time.
type one struct {
	transfers [][]float64     // seconds, by stage
	stages    []time.Duration // how long each took
	switching time.Duration   // of which: until rates of a new stage were set
}

func (o one) makespan() (sum time.Duration) {
	for _, d := range o.stages {
		sum += d
	}
	return sum
}

// runner runs the application on a lease.
type runner struct {
	scale Scale
	bed   *testbed.Testbed
	lease vnet.Lease
	pairs []pair
}

// start leases what an allocation says, and connects sources and workers.
func start(ctx context.Context, g *testbed.Testbed, a Allocation, s Scale) (*runner, error) {
	l, err := g.Up(ctx, text(a, s))
	if err != nil {
		return nil, err
	}
	r := &runner{scale: s, bed: g, lease: l}
	for i := range Pairs {
		p, err := connect(ctx, g, l, source(i), worker(i))
		r.pairs = append(r.pairs, p)
		if err != nil {
			r.stop()
			return nil, err
		}
	}
	return r, nil
}

func (r *runner) stop() {
	for _, p := range r.pairs {
		p.close()
	}
}

// run goes through all stages. The same draw gives the same sizes of data.
func (r *runner) run(ctx context.Context, draw *rand.Rand) (one, error) {
	var o one
	for n, stage := range Bronze {
		began := time.Now()
		if n > 0 {
			if err := r.begin(ctx, stage.Name); err != nil {
				return o, err
			}
		}
		switched := time.Since(began)
		times, err := r.stage(ctx, stage, draw)
		if err != nil {
			return o, fmt.Errorf("stage %s: %w", stage.Name, err)
		}
		// Rates are set in the lab's time, whatever the scale.
		o.stages = append(o.stages, r.grow(time.Since(began)-switched)+switched)
		o.switching += switched
		o.transfers = append(o.transfers, times)
	}
	return o, nil
}

func (r *runner) grow(d time.Duration) time.Duration {
	return time.Duration(float64(d) * r.scale.Time)
}

// begin asks for a stage and waits until its rates are set.
func (r *runner) begin(ctx context.Context, stage string) error {
	if _, err := r.bed.Client.BeginStage(ctx, r.lease.ID(), stage); err != nil {
		return err
	}
	l, err := r.bed.Client.WaitApplied(ctx, r.lease.ID())
	if err == nil && l.State != vnet.Running {
		err = fmt.Errorf("%s is %s: %s", l.ID(), l.State, l.Message)
	}
	return err
}

// stage lets all workers do a stage and returns how long each transfer took.
func (r *runner) stage(ctx context.Context, s Stage, draw *rand.Rand) ([]float64, error) {
	times, failed := make([]float64, 2*Pairs), make([]error, Pairs)
	var working sync.WaitGroup
	for i, p := range r.pairs {
		bytes := r.scale.payload(s.Bits * (1 + s.Spread*draw.NormFloat64()))
		working.Go(func() { failed[i] = r.work(ctx, s, p, bytes, times[2*i:2*i+2]) })
	}
	working.Wait()
	for i, err := range failed {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", worker(i), err)
		}
	}
	return times, nil
}

// work is what one worker does in a stage.
func (r *runner) work(ctx context.Context, s Stage, p pair, bytes int64, times []float64) error {
	transfer := func(n int, fetch bool) error {
		began, from, to := time.Now(), p.worker, p.source
		if fetch {
			from, to = to, from
		}
		if err := rest(ctx, r.scale.shrink(s.Fixed)); err != nil {
			return err
		}
		err := move(ctx, from, to, bytes)
		times[n] = r.grow(time.Since(began)).Seconds()
		return err
	}
	if err := transfer(0, true); err != nil {
		return err
	}
	if err := rest(ctx, r.scale.shrink(s.Compute)); err != nil {
		return err
	}
	return transfer(1, false)
}

// rest waits.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
