package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sublet/vxswitch/figure"
	"sublet/vxswitch/runs"
	"sublet/vxswitch/scenario"
	"sublet/vxswitch/sim"
)

func (a *app) sim() *cobra.Command {
	c := &cobra.Command{
		Use:     "sim",
		Short:   "Simulate before leasing",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
		Example: "  sublet sim vxswitch examples/vxswitch/hello.yaml",
	}
	c.AddCommand(a.simSwitch())
	return c
}

// simOptions is what the flags of sim vxswitch say.
type simOptions struct {
	departures, arrivals, plot string
	seed                       uint64
	runs, jobs                 int
}

func (a *app) simSwitch() *cobra.Command {
	var o simOptions
	c := a.noun(&cobra.Command{
		Use:   "vxswitch SCENARIO",
		Short: "Simulate a switch that is leased in slices",
		Long: `Simulate a crosspoint-queued switch that hosts virtual switches, as a scenario
describes it (docs/vxswitch.md), with the engine that real ports use. The same
scenario and seed give the same numbers on every machine.

Exit code 4 if something the scenario expects does not come out.`,
		Example: "  sublet sim vxswitch examples/vxswitch/hello.yaml\n  sublet sim vxswitch examples/vxswitch/figure-4-6.yaml -o json --plot figure.svg\n  sublet sim vxswitch examples/vxswitch/hello.yaml --departures out.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(a.checkFormat(), o.check()); err != nil {
				return err
			}
			return a.simulate(c, args[0], &o)
		},
	})
	c.Flags().StringVar(&o.departures, "departures", "", "write every departure to this file, as JSON lines (runs one after the other)")
	c.Flags().StringVar(&o.arrivals, "arrivals", "", "write every arrival to this file, in the form a trace has")
	c.Flags().StringVar(&o.plot, "plot", "", "draw the figures into this .svg or .png file, - for the terminal")
	c.Flags().Uint64Var(&o.seed, "seed", 0, "seed of the first run, instead of the scenario's")
	c.Flags().IntVar(&o.runs, "runs", 0, "number of runs, instead of the scenario's")
	c.Flags().IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "runs at the same time")
	return c
}

func (o *simOptions) check() error {
	if o.runs < 0 || o.runs > 10_000 {
		return badInput{fmt.Errorf("--runs %d: choose 1 to 10000", o.runs)}
	}
	if o.jobs < 1 {
		return badInput{fmt.Errorf("--jobs %d: choose 1 or more", o.jobs)}
	}
	if format := o.plotFormat(); o.plot != "" && o.plot != "-" && !slices.Contains(figure.Formats, format) {
		return badInput{fmt.Errorf("--plot %s: name a file that ends in .svg or .png, or - for the terminal", o.plot)}
	}
	return nil
}

func (o *simOptions) plotFormat() string {
	return strings.TrimPrefix(strings.ToLower(filepath.Ext(o.plot)), ".")
}

func (a *app) simulate(c *cobra.Command, name string, o *simOptions) error {
	e, err := a.readScenario(name, o)
	if err != nil {
		return err
	}
	logs, err := o.open()
	if err != nil {
		return err
	}
	results, err := runs.All(c.Context(), e, logs.writers(), o.jobs)
	if err = errors.Join(err, logs.close()); err != nil {
		return err
	}
	verdicts := e.Judge(results)
	if err := a.printResults(e, results, verdicts); err != nil {
		return err
	}
	if err := a.drawResults(e, results, o); err != nil {
		return err
	}
	if slices.ContainsFunc(verdicts, func(v scenario.Verdict) bool { return !v.Met }) {
		return errBroken
	}
	return nil
}

func (a *app) readScenario(name string, o *simOptions) (*scenario.Experiment, error) {
	text, err := a.readFile(name)
	if err != nil {
		return nil, err
	}
	folder := filepath.Dir(name)
	open := func(path string) (io.ReadCloser, error) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		return os.Open(path)
	}
	e, err := scenario.Parse(name, text, open)
	if err != nil {
		return nil, err
	}
	for i := range e.Points {
		if o.runs > 0 {
			e.Points[i].Runs = o.runs
		}
		if o.seed > 0 {
			e.Points[i].Seed = o.seed
		}
	}
	return e, nil
}

// drawResults draws what --plot asks for; on a terminal after the table.
func (a *app) drawResults(e *scenario.Experiment, results []*sim.Result, o *simOptions) error {
	if o.plot == "" {
		return nil
	}
	charts := figure.Charts(e, results)
	if o.plot == "-" {
		f, ok := a.out.(*os.File)
		_, err := fmt.Fprint(a.out, figure.Terminal(charts, ok && term.IsTerminal(int(f.Fd()))))
		return err
	}
	var b bytes.Buffer
	if err := figure.Draw(&b, o.plotFormat(), charts); err != nil {
		return err
	}
	return write(o.plot, b.Bytes())
}
