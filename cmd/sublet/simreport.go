package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"sublet/vxswitch/runs"
	"sublet/vxswitch/scenario"
	"sublet/vxswitch/sim"
)

// simLogs is the files that packets are written to; nil ones are not wanted.
type simLogs struct{ departures, arrivals *os.File }

func (o *simOptions) open() (l simLogs, err error) {
	if o.departures != "" {
		if l.departures, err = create(o.departures, 0o644); err != nil {
			return l, err
		}
	}
	if o.arrivals != "" {
		l.arrivals, err = create(o.arrivals, 0o644)
	}
	return l, err
}

// writers are the files, where runs write to.
func (l simLogs) writers() (w runs.Logs) {
	if l.departures != nil {
		w.Departures = l.departures
	}
	if l.arrivals != nil {
		w.Arrivals = l.arrivals
	}
	return w
}

func (l simLogs) close() error {
	var err error
	for _, f := range []*os.File{l.departures, l.arrivals} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// simReport is what sim vxswitch prints as JSON
// (docs/schema/simulation.schema.json).
type simReport struct {
	Scenario string             `json:"scenario"`
	Points   []simPoint         `json:"points"`
	Expect   []scenario.Verdict `json:"expect"`
}

type simPoint struct {
	Set map[string]string `json:"set"`
	*sim.Result
}

func (a *app) printResults(e *scenario.Experiment, results []*sim.Result, verdicts []scenario.Verdict) error {
	report := simReport{Scenario: e.Name, Expect: verdicts}
	if verdicts == nil {
		report.Expect = []scenario.Verdict{}
	}
	var rows [][]string
	for i, r := range results {
		report.Points = append(report.Points, simPoint{e.Points[i].Set, r})
		rows = append(rows, simRows(e, i, r)...)
	}
	var header []string
	for _, axis := range e.Axes {
		header = append(header, strings.ToUpper(strings.Join(axis.Fields, "+")))
	}
	header = append(header, "SWITCH OFFERED DELIVERED DROPPED THROUGHPUT BY-BYTES DELAY P50 P99 STD OCCUPANCY")
	if err := a.print(report, strings.Join(header, " "), rows); err != nil || a.format != "table" {
		return err
	}
	return a.printVerdicts(e, results, verdicts)
}

func (a *app) printVerdicts(e *scenario.Experiment, results []*sim.Result, verdicts []scenario.Verdict) error {
	fmt.Fprintf(a.out, "\nseeds %v, %v measured each\n", results[0].Seeds, e.Points[0].Duration-e.Points[0].Warmup)
	for _, v := range verdicts {
		word := "met"
		if !v.Met {
			word = "NOT MET: " + v.Why
		}
		fmt.Fprintf(a.out, "%s\n  %.6g to %.6g over %d points, allowed %s: %s\n", v.Says, float64(v.Least), float64(v.Most), v.Points, v.Allowed, word)
	}
	return nil
}

// simRows are those of one point: the whole, a split, every virtual switch and
// its outputs.
func simRows(e *scenario.Experiment, point int, r *sim.Result) [][]string {
	var prefix []string
	for _, axis := range e.Axes {
		var words []string
		for _, path := range axis.Fields {
			words = append(words, e.Points[point].Set[path])
		}
		prefix = append(prefix, strings.Join(words, "+"))
	}
	var rows [][]string
	add := func(name string, s sim.Estimate) {
		rows = append(rows, append(append([]string{}, prefix...), simRow(name, s)...))
	}
	add("total", r.Total)
	if r.Split != nil {
		add("split", r.Split.EndToEnd)
		for _, p := range r.Split.Paths {
			add(fmt.Sprintf("split path %d", p.Port), p.Estimate)
		}
	}
	if len(e.Points) > 1 && len(r.VirtualSwitches) > 2 {
		return rows // the table of an experiment stays readable; JSON has all
	}
	for _, v := range r.VirtualSwitches {
		add(v.Name, v.Estimate)
		for _, p := range v.Outputs {
			if len(v.Outputs) > 1 {
				add(fmt.Sprintf("%s output %d", v.Name, p.Port), p.Estimate)
			}
		}
	}
	return rows
}

func simRow(name string, s sim.Estimate) []string {
	row := []string{name}
	for _, m := range []sim.Measure{sim.OfferedPackets, sim.DeliveredPackets, sim.DroppedPackets} {
		row = append(row, strconv.FormatFloat(s.Mean[m], 'f', -1, 64))
	}
	for _, m := range []sim.Measure{sim.ThroughputPackets, sim.ThroughputBytes} {
		row = append(row, simCell(s, m, 1e-2, "%.3f", "%"))
	}
	for _, m := range []sim.Measure{sim.DelayMean, sim.DelayP50, sim.DelayP99, sim.DelayStd} {
		row = append(row, simCell(s, m, 1e3, "%.2f", "us"))
	}
	return append(row, simCell(s, sim.OccupancyMean, 1, "%.0f", "B"))
}

// simCell writes mean and half-width in a unit.
func simCell(s sim.Estimate, m sim.Measure, unit float64, format, word string) string {
	text := fmt.Sprintf(format, s.Mean[m]/unit)
	if s.Half != nil {
		text += "±" + fmt.Sprintf(format, s.Half[m]/unit)
	}
	return text + word
}
