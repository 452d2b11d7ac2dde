package workflow

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"sublet/lab/testbed"
	"sublet/vnet"
)

// Config is what an experiment is told.
type Config struct {
	Exe   string // the program
	Scale Scale
	Runs  int
	Seed  uint64
}

// Check refuses what no lab can do.
func (c Config) Check() error {
	switch {
	case !(c.Scale.Time >= 1 && c.Scale.Time <= 200):
		return errors.New("choose a scale of time from 1 to 200")
	case c.Scale.Rate < 1 || c.Scale.Rate > 50:
		return errors.New("choose a scale of rates from 1 to 50")
	case c.Runs < 1 || c.Runs > 1000:
		return errors.New("choose 1 to 1000 runs")
	}
	return root()
}

// Row is what an allocation came to, in the application's own time.
type Row struct {
	Allocation string    `json:"allocation"`
	Rival      bool      `json:"rival"` // another tenant filled the backbone meanwhile
	Runs       int       `json:"runs"`
	Rates      []float64 `json:"mbit"`        // by stage
	Transfer   []float64 `json:"transfer_s"`  // by stage, the mean of all workers and runs
	Spread     []float64 `json:"transfer_sd"` // their standard deviation
	Makespan   float64   `json:"makespan_min"`
	Deviation  float64   `json:"makespan_sd_min"`
	CV         float64   `json:"cv"`          // of the makespan over the runs
	Switching  float64   `json:"switching_s"` // of the lab's time in a run, until rates of new stages were set
	Resource   float64   `json:"cost_c_r"`    // 1e5
	Bandwidth  float64   `json:"cost_c_b"`    // 1e5
	Slowdown   float64   `json:"slowdown"`    // makespan over that without rival; 1 without
	Published  Published `json:"published"`
}

// Run does all allocations in turn, without and with a rival, as often as is asked.
// All of one turn get data of the same sizes. Say is told what is done.
func Run(ctx context.Context, c Config, say func(string)) (rows []Row, err error) {
	sub, err := substrate(c.Scale)
	if err != nil {
		return nil, err
	}
	say("making the lab")
	g, err := testbed.Start(ctx, c.Exe, sub, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	e := experiment{Config: c, bed: g, say: say, all: make(map[cell][]one)}
	for turn := range c.Runs {
		if err := e.turn(ctx, turn); err != nil {
			return nil, err
		}
	}
	return e.rows()
}

// cell is a row of the table.
type cell struct {
	allocation int
	rival      bool
}

type experiment struct {
	Config
	bed *testbed.Testbed
	say func(string)
	all map[cell][]one
}

// turn runs each row once.
func (e *experiment) turn(ctx context.Context, turn int) error {
	for _, beside := range []bool{false, true} {
		for i, a := range Allocations {
			e.say(fmt.Sprintf("run %d of %d: %s%s", turn+1, e.Runs, a.Name, map[bool]string{true: ", beside a rival"}[beside]))
			o, err := e.one(ctx, a, beside, rand.New(rand.NewPCG(e.Seed, uint64(turn))))
			if err != nil {
				return fmt.Errorf("%s: %w", a.Name, err)
			}
			e.all[cell{i, beside}] = append(e.all[cell{i, beside}], o)
		}
	}
	return nil
}

// one leases, runs and releases.
func (e *experiment) one(ctx context.Context, a Allocation, beside bool, draw *rand.Rand) (o one, err error) {
	if beside {
		var end func() error
		if end, err = e.rival(ctx); err != nil {
			return o, err
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	r, err := start(ctx, e.bed, a, e.Scale)
	if err != nil {
		return o, err
	}
	defer func() { r.stop(); err = errors.Join(err, e.release(ctx, r.lease.ID())) }()
	return r.run(ctx, draw)
}

// rival leases what the other tenant has and fills it.
func (e *experiment) rival(ctx context.Context) (end func() error, err error) {
	l, err := e.bed.Up(ctx, rival(e.Scale))
	if err != nil {
		return nil, err
	}
	stop, err := flood(ctx, e.bed, l)
	if err != nil {
		return nil, err
	}
	return func() error { stop(); return e.release(ctx, l.ID()) }, nil
}

func (e *experiment) release(ctx context.Context, id vnet.LeaseID) error {
	if _, err := e.bed.Client.Release(ctx, id); err != nil {
		return err
	}
	return e.bed.Client.WaitGone(ctx, id)
}

// rows are the table.
func (e *experiment) rows() (rows []Row, err error) {
	for _, beside := range []bool{false, true} {
		for i, a := range Allocations {
			row, err := e.row(a, e.all[cell{i, beside}])
			if err != nil {
				return nil, err
			}
			row.Rival, row.Slowdown = beside, 1
			if beside {
				row.Slowdown = row.Makespan / rows[i].Makespan
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (e *experiment) row(a Allocation, runs []one) (row Row, err error) {
	row = Row{Allocation: a.Name, Runs: len(runs), Published: a.Published}
	var minutes, switching []float64
	whole := make([]time.Duration, len(Bronze))
	for _, o := range runs {
		minutes, switching = append(minutes, o.makespan().Minutes()), append(switching, o.switching.Seconds())
		for n, d := range o.stages {
			whole[n] += d / time.Duration(len(runs))
		}
	}
	row.Makespan, row.Deviation = meanOf(minutes)
	row.CV = row.Deviation / row.Makespan
	row.Switching, _ = meanOf(switching)
	for n := range Bronze {
		var all []float64
		for _, o := range runs {
			all = append(all, o.transfers[n]...)
		}
		mean, sd := meanOf(all)
		row.Rates, row.Transfer, row.Spread = append(row.Rates, a.Rates[n].Mbps()), append(row.Transfer, mean), append(row.Spread, sd)
	}
	row.Resource, row.Bandwidth, err = cost(a, whole)
	return row, err
}

// meanOf is a mean and a standard deviation of samples; 0 of a single one.
func meanOf(x []float64) (mean, sd float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sd += (v - mean) * (v - mean) / float64(max(1, len(x)-1))
	}
	return mean, math.Sqrt(sd)
}
