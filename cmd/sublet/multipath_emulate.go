package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sublet/fabric/spread"
	"sublet/lab"
	"sublet/lab/emulate"
	"sublet/vnet"
)

// emulationRun is how `bench multipath --emulate` runs.
type emulationRun struct {
	on        bool
	rate      string
	buffering time.Duration
	settle    time.Duration
	measure   time.Duration
	rearrange time.Duration

	damages []string
	load    float64
	probe   time.Duration
	lost    int
	svg     string

	capacity vnet.Rate
}

func (e *emulationRun) flags(c *cobra.Command) {
	c.Flags().BoolVar(&e.on, "emulate", false, "run it in a lab with FRR instead of the model")
	c.Flags().StringVar(&e.rate, "rate", "2Mbit", "rate of every emulated link")
	c.Flags().DurationVar(&e.buffering, "buffering", 200*time.Millisecond, "buffer of every emulated link, as time at its rate")
	c.Flags().DurationVar(&e.settle, "settle", 12*time.Second, "time before an emulated run is measured")
	c.Flags().DurationVar(&e.measure, "measure", 8*time.Second, "how long an emulated run is measured")
	c.Flags().DurationVar(&e.rearrange, "rearrange", 500*time.Millisecond, "how often an emulated sender may move a flow")
	c.Flags().StringArrayVar(&e.damages, "damage", nil, "emulate a failure under load instead: cut, switch or silent; may be repeated")
	c.Flags().Float64Var(&e.load, "load", 0.5, "what senders send while something fails, as a part of their wire's rate")
	c.Flags().DurationVar(&e.probe, "probe", 20*time.Millisecond, "time between probes of a path, with --damage")
	c.Flags().IntVar(&e.lost, "lost", 7, "probes in a row without an answer after which a path is dead")
	c.Flags().StringVar(&e.svg, "svg", "", "file for a plot of what is received while something fails")
}

func (e *emulationRun) check() (err error) {
	if !e.on {
		if len(e.damages) > 0 {
			return badInput{errors.New("--damage: failures are emulated only: add --emulate")}
		}
		return nil
	}
	if i := slices.IndexFunc(e.damages, func(d string) bool { return !slices.Contains(emulate.Damages, d) }); i >= 0 {
		return badInput{fmt.Errorf("--damage %q: choose cut, switch or silent", e.damages[i])}
	}
	if !(e.load > 0 && e.load <= 1) || e.lost < 2 || e.lost > 200 || e.probe < time.Millisecond || e.probe > time.Minute {
		return badInput{errors.New("--load is above 0 and at most 1, --lost 2 to 200, --probe 1ms to 1m")}
	}
	if e.capacity, err = vnet.ParseRate(e.rate); err != nil || e.capacity < vnet.Mbit/2 || e.capacity > vnet.Gbit {
		return badInput{fmt.Errorf("--rate %q: choose 500kbit to 1Gbit", e.rate)}
	}
	for name, d := range map[string]time.Duration{"settle": e.settle, "measure": e.measure, "rearrange": e.rearrange, "buffering": e.buffering} {
		if d < 10*time.Millisecond || d > 10*time.Minute {
			return badInput{fmt.Errorf("--%s %s: choose 10ms to 10m", name, d)}
		}
	}
	if _, err := os.Stat(filepath.Dir(e.svg)); e.svg != "" && err != nil {
		return badInput{fmt.Errorf("--svg: %w", err)}
	}
	if !lab.HasFRR() {
		return badInput{errors.New(lab.NoFRR)}
	}
	if os.Geteuid() != 0 {
		return badInput{errors.New("an emulation is made of network namespaces: run it as root")}
	}
	return nil
}

// emulated is what a row of an emulation has besides.
type emulated struct {
	LateMs   float64 `json:"late_ms"`  // of the latest packet of all runs
	Idle     float64 `json:"idle"`     // least part of the processors' time that was left
	Moves    int     `json:"moves"`    // of flows, while they were measured
	Repeated int     `json:"repeated"` // runs, because the machine did not keep up
}

func (a *app) emulateMultipath(ctx context.Context, b multipathRun) error {
	sub, model, err := a.readFabric(b)
	if err != nil {
		return err
	}
	if err := emulate.Fits(sub); err != nil {
		return badInput{err}
	}
	sub.Links = slices.Clone(sub.Links)
	for i := range sub.Links {
		sub.Links[i].Capacity = b.emulation.capacity
	}
	asked, err := b.asked(model)
	if err != nil {
		return badInput{err}
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	p := a.progress("making the fabric")
	f, err := emulate.Start(ctx, emulate.Config{Exe: exe, Substrate: sub, Buffering: b.emulation.buffering})
	p.end()
	if err != nil {
		return err
	}
	if len(b.emulation.damages) > 0 {
		rows, err := a.emulateDamages(ctx, b, f, asked)
		if err := errors.Join(err, f.Stop()); err != nil {
			return err
		}
		return a.print(rows, "TOPOLOGY PATTERN DAMAGE ELEMENT FLOWS AFFECTED MOVED-MS MEDIAN-MS LOST-OTHERS MOVED-OTHERS LATE", damageTable(rows))
	}
	rows, err := a.emulateAll(ctx, b, f, asked)
	if err := errors.Join(err, f.Stop()); err != nil {
		return err
	}
	return a.print(rows, multipathTitle+" LATE IDLE", emulatedTable(rows))
}

// question is one row to be.
type question struct {
	pattern spread.Pattern
	flows   spread.Distribution
	method  spread.Method
}

func (q question) streams() bool { return q.method.Streams() }

// asked lists the rows.
func (b multipathRun) asked(model *spread.Fabric) (all []question, err error) {
	patterns, err := b.suitable(model)
	if err != nil {
		return nil, err
	}
	for _, p := range patterns {
		for _, text := range b.methods {
			m, err := spread.ParseMethod(text)
			if err != nil {
				return nil, err
			}
			if m.Kind() == "coupled" {
				return nil, fmt.Errorf("method %q is not emulated: the kernel has no coupled congestion control", text)
			}
			if m.Streams() {
				all = append(all, question{pattern: p, method: m})
				continue
			}
			for _, d := range b.flows {
				all = append(all, question{p, spread.Distribution(d), m})
			}
		}
	}
	return all, nil
}

func (a *app) emulateAll(ctx context.Context, b multipathRun, f *emulate.Fabric, asked []question) ([]multipathRow, error) {
	rows := []multipathRow{}
	if slices.ContainsFunc(asked, question.streams) {
		if err := f.Subflows(b.count(8)); err != nil {
			return nil, badInput{err}
		}
	}
	single := make(map[string][]float64)
	for i, q := range asked {
		p := a.progress(fmt.Sprintf("running %s, %s, %s (%d of %d)", q.pattern.Name, q.flows, q.method.Name, i+1, len(asked)))
		row, err := b.emulateRow(ctx, f, q, single)
		p.end()
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// emulateRow runs the draws of a row. single has what streams over single paths
// got, by pattern.
func (b multipathRun) emulateRow(ctx context.Context, f *emulate.Fabric, q question, single map[string][]float64) (multipathRow, error) {
	if q.streams() {
		return b.emulateStreams(ctx, f, q, single)
	}
	row := multipathRow{Topology: b.topology, Mode: "emulation", Pattern: q.pattern.Name, Flows: string(q.flows), Method: q.method.Name, Runs: b.runs, emulated: &emulated{Idle: 1}}
	values := make([]float64, b.runs)
	sum := 0.0
	for i := range values {
		r, err := b.emulateOne(ctx, f, q, uint64(i), row.emulated)
		if err != nil {
			return row, err
		}
		values[i] = r.Rate()
		sum += r.Rate()
		row.note(r)
	}
	mean := sum / float64(b.runs)
	row.ForwardingRate, row.Spread = &mean, slices.Max(values)-slices.Min(values)
	return row, nil
}

// emulateStreams is emulateRow for connections: what each draw gets, by what it
// gets over single shortest paths.
func (b multipathRun) emulateStreams(ctx context.Context, f *emulate.Fabric, q question, single map[string][]float64) (multipathRow, error) {
	row := multipathRow{Topology: b.topology, Mode: "emulation", Pattern: q.pattern.Name, Flows: fmt.Sprint(b.count(8)), Method: q.method.Name, Runs: b.runs, emulated: &emulated{Idle: 1}}
	if single[q.pattern.Name] == nil {
		one, _ := spread.ParseMethod("single")
		base, err := b.receive(ctx, f, question{pattern: q.pattern, method: one}, row.emulated)
		if err != nil {
			return row, err
		}
		single[q.pattern.Name] = base
	}
	got := single[q.pattern.Name]
	if q.method.Name != "single" {
		var err error
		if got, err = b.receive(ctx, f, q, row.emulated); err != nil {
			return row, err
		}
	}
	gains, mean := make([]float64, b.runs), 0.0
	for i := range gains {
		gains[i] = got[i] / max(single[q.pattern.Name][i], 1)
		mean += gains[i] / float64(b.runs)
	}
	row.Gain, row.Spread = &mean, slices.Max(gains)-slices.Min(gains)
	return row, nil
}

// receive is the bytes that arrive in each draw.
func (b multipathRun) receive(ctx context.Context, f *emulate.Fabric, q question, e *emulated) ([]float64, error) {
	t := emulate.Timing{Settle: b.emulation.settle, Measure: b.emulation.measure}
	got := make([]float64, b.runs)
	for i := range got {
		rng := rand.New(rand.NewPCG(b.seed, uint64(i)))
		bytes, r, err := f.Streams(ctx, q.pattern.Targets(f.Hosts(), rng), q.method, t)
		if err != nil {
			return nil, err
		}
		got[i] = float64(bytes)
		e.note(r)
	}
	return got, nil
}

func (e *emulated) note(r emulate.Result) {
	e.LateMs = max(e.LateMs, float64(r.Late.Microseconds())/1000)
	e.Idle, e.Moves = min(e.Idle, r.Idle), e.Moves+r.Moves
}

// attempts to get a run that the machine did not disturb.
const attempts = 2

// emulateOne is one draw: the model's for the same seed.
func (b multipathRun) emulateOne(ctx context.Context, f *emulate.Fabric, q question, run uint64, e *emulated) (r emulate.Result, err error) {
	t := emulate.Timing{Settle: b.emulation.settle, Measure: b.emulation.measure, Rearrange: b.emulation.rearrange}
	for i := range attempts {
		rng := rand.New(rand.NewPCG(b.seed, run))
		r, err = f.Datagrams(ctx, q.pattern.Targets(f.Hosts(), rng), b.count(20), q.flows, q.method, t, rng)
		if err != nil || r.Late <= b.emulation.buffering || i == attempts-1 {
			break
		}
		e.Repeated++
	}
	return r, err
}

func emulatedTable(all []multipathRow) [][]string {
	rows := tableOf(all)
	for i, r := range all {
		rows[i] = append(rows[i], fmt.Sprintf("%.1fms", r.LateMs), fmt.Sprintf("%.0f%%", 100*r.Idle))
	}
	return rows
}
