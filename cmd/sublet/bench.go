package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sublet/embed"
	"sublet/embed/replay"
	"sublet/vnet"
)

func (a *app) bench() *cobra.Command {
	c := &cobra.Command{
		Use:     "bench",
		Short:   "Measure engines on published instances and topologies, applications, and controllers",
		Example: "  sublet bench embed geant_0.txt",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.benchApplication(), a.benchEmbed(), a.benchMultipath(), a.benchOpenFlow())
	return c
}

// benchRun is what `bench embed` was asked for.
type benchRun struct {
	options   embed.Options
	objective string
	split     bool
	mappings  string
}

func (a *app) benchEmbed() *cobra.Command {
	var b benchRun
	c := a.noun(&cobra.Command{
		Use:   "embed FILE",
		Short: "Replay an instance of the public embedding benchmark",
		Long: `Replay an instance of the public embedding benchmark: requests arrive, are
embedded beside those that are in, or refused, and leave. No server is needed.

The file holds words separated by white space: P, the numbers of substrate
nodes and links, a processor capacity for each node, "end end capacity" for
each link; V, the number of requests, for each of them its numbers of nodes and
links, arrival, lifetime, processor demands and "end end demand" of its links;
E, the number of events, for each 1 (arrives) or 0 (leaves), the request and
the time. The nodes of a request go to different hosts.

The same file, budget and seed give the same mappings on every machine: the
budget is counted in units of work. Times are processor time of the one thread
that embeds.`,
		Example: "  sublet bench embed geant_0.txt\n  sublet bench embed geant_0.txt --budget 20ms --mappings out.jsonl -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := errors.Join(a.checkFormat(), b.check()); err != nil {
				return err
			}
			return a.replay(args[0], b)
		},
	})
	c.Flags().DurationVar(&b.options.Budget, "budget", embed.DefaultBudget, "time to spend on a request")
	c.Flags().Uint64Var(&b.options.Seed, "seed", 0, "choose among searches of equal effort")
	c.Flags().StringVar(&b.objective, "objective", string(vnet.RevenueOverCost), "revenue-cost, load-balance or energy")
	c.Flags().BoolVar(&b.split, "split", false, "let virtual links be split over several paths; the mappings give each with its share")
	c.Flags().StringVar(&b.mappings, "mappings", "", "write where each accepted request went to this file, a JSON line each")
	_ = c.RegisterFlagCompletionFunc("objective", cobra.FixedCompletions([]string{"revenue-cost", "load-balance", "energy"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// check refuses options before anything is read.
func (b benchRun) check() error {
	if b.options.Budget <= 0 {
		return badInput{fmt.Errorf("--budget %s: state a time above 0, such as 5ms", b.options.Budget)}
	}
	if !slices.Contains(vnet.Objectives, vnet.Objective(b.objective)) {
		return badInput{fmt.Errorf("--objective %q: choose revenue-cost, load-balance or energy", b.objective)}
	}
	return nil
}

// replay runs an instance and prints its figures.
func (a *app) replay(name string, b benchRun) error {
	text, err := a.readFile(name)
	if err != nil {
		return err
	}
	instance, err := replay.Parse(name, text)
	if err != nil {
		return err
	}
	options := replay.Options{Embed: b.options, Objective: vnet.Objective(b.objective), Split: b.split, Clock: threadTime}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, err := withMappings(b.mappings, func(accepted func(replay.Mapping) error) (replay.Figures, error) {
		options.Accepted = accepted
		return replay.Run(instance, options)
	})
	if err != nil {
		return err
	}
	return a.print(f, "ACCEPTED REQUESTS ACCEPTANCE REVENUE/COST LONG-TERM-REVENUE MS-MEAN MS-P99", [][]string{{
		fmt.Sprint(f.Accepted), fmt.Sprint(f.Requests), fmt.Sprintf("%.1f%%", 100*f.Acceptance), fmt.Sprintf("%.3f", f.RevenueCost),
		fmt.Sprintf("%.1f", f.LongTermRevenue), fmt.Sprintf("%.2f", f.Mean), fmt.Sprintf("%.2f", f.P99),
	}})
}

// threadTime is the processor time this thread has used: what a request costs,
// whatever else the machine does.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// withMappings runs with a file for the mappings, if one is named.
func withMappings(name string, run func(func(replay.Mapping) error) (replay.Figures, error)) (replay.Figures, error) {
	if name == "" {
		return run(nil)
	}
	f, err := create(name, 0o644)
	if err != nil {
		return replay.Figures{}, err
	}
	buffer := bufio.NewWriter(f)
	lines := json.NewEncoder(buffer)
	figures, err := run(func(m replay.Mapping) error { return lines.Encode(m) })
	return figures, errors.Join(err, buffer.Flush(), f.Close())
}
