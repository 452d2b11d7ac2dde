package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"sublet/lab/emulate"
	"sublet/vxswitch/figure"
)

// damageRow is what a failure under load did, over all runs.
type damageRow struct {
	Topology   string  `json:"topology"`
	Mode       string  `json:"mode"`
	Pattern    string  `json:"pattern"`
	Flows      string  `json:"flows"`
	Method     string  `json:"method"`
	Damage     string  `json:"damage"`
	Element    string  `json:"element"`
	Load       float64 `json:"load"`
	FlowsTotal int     `json:"flows_total"`
	Affected   int     `json:"flows_affected"`
	// From the damage to when the last packet that was lost left: of the
	// affected flow that moved last, and of the one in the middle.
	Moved   float64 `json:"moved_ms"`
	Median  float64 `json:"moved_median_ms"`
	Lost    int     `json:"lost_of_others"`  // packets of flows on other paths
	Strayed int     `json:"moved_of_others"` // flows on other paths that are elsewhere at the end
	Runs    int     `json:"runs"`
	Spread  float64 `json:"spread"` // of moved_ms
	LateMs  float64 `json:"late_ms"`
	Idle    float64 `json:"idle"`
}

// emulateDamages runs all failures over the first pattern; OSPF has time to
// settle in between.
func (a *app) emulateDamages(ctx context.Context, b multipathRun, f *emulate.Fabric, asked []question) ([]damageRow, error) {
	rows := []damageRow{}
	var charts []figure.Chart
	for _, damage := range b.emulation.damages {
		row := damageRow{Topology: b.topology, Mode: "emulation", Pattern: asked[0].pattern.Name, Flows: "same", Method: "flow", Damage: damage, Load: b.emulation.load, Runs: b.runs, Idle: 1}
		var outages []time.Duration
		var worst []float64
		for i := range b.runs {
			rng := rand.New(rand.NewPCG(b.seed, uint64(i)))
			p := a.progress(fmt.Sprintf("%s, run %d of %d", damage, i+1, b.runs))
			x, err := f.Fail(ctx, asked[0].pattern.Targets(f.Hosts(), rng), b.count(8), b.emulation.load, damage, emulate.Watching{Every: b.emulation.probe, Lost: b.emulation.lost}, b.emulation.settle)
			p.end()
			if err != nil {
				return nil, err
			}
			row.add(x)
			outages = append(outages, x.Outages...)
			worst = append(worst, milliseconds(slices.Max(append(x.Outages, 0))))
			if i == 0 {
				charts = append(charts, chartOf(damage, x))
			}
		}
		row.Moved, row.Spread = slices.Max(worst), slices.Max(worst)-slices.Min(worst)
		if slices.Sort(outages); len(outages) > 0 {
			row.Median = milliseconds(outages[len(outages)/2])
		}
		rows = append(rows, row)
	}
	return rows, b.emulation.drawFailures(charts)
}

func (r *damageRow) add(x *emulate.Failure) {
	r.Element = x.Element
	r.FlowsTotal, r.Affected = r.FlowsTotal+x.Flows, r.Affected+x.Affected
	r.Lost, r.Strayed = r.Lost+x.Lost, r.Strayed+x.Moved
	r.LateMs, r.Idle = max(r.LateMs, milliseconds(x.Late)), min(r.Idle, x.Idle)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// chartOf draws what was received over time, of flows whose path was damaged
// and of the others.
func chartOf(damage string, x *emulate.Failure) figure.Chart {
	c := figure.Chart{Title: damage + " " + x.Element, X: "seconds from the damage", Y: "received of what was sent"}
	for side, name := range []string{"flows over the element", "other flows"} {
		line := figure.Line{Name: name}
		for i, rate := range x.Rates[side][:len(x.Rates[side])-1] {
			at := (time.Duration(i)*x.Bin - x.Before).Seconds()
			line.X, line.Y, line.Half = append(line.X, at), append(line.Y, rate), append(line.Half, math.NaN())
			line.Labels = append(line.Labels, fmt.Sprintf("%.1f", at))
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}

func (e *emulationRun) drawFailures(charts []figure.Chart) (err error) {
	if e.svg == "" || len(charts) == 0 {
		return nil
	}
	file, err := os.Create(e.svg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return figure.Draw(file, "svg", charts)
}

func damageTable(all []damageRow) [][]string {
	var rows [][]string
	for _, r := range all {
		rows = append(rows, []string{r.Topology, r.Pattern, r.Damage, r.Element, fmt.Sprint(r.FlowsTotal), fmt.Sprint(r.Affected), fmt.Sprintf("%.0f", r.Moved), fmt.Sprintf("%.0f", r.Median), fmt.Sprint(r.Lost), fmt.Sprint(r.Strayed), fmt.Sprintf("%.1fms", r.LateMs)})
	}
	return rows
}
