// Command packetcost gauges what a packet of a lease costs, against no
// virtualization, the kernel's own parts, Linux bridge, and Open vSwitch. All networks of a group are up at once
// and measured in turn, round after round, by the same generator on the same
// processor; what arrives is counted and dropped at the last device.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"sublet/bench/harness"
)

var (
	rounds = flag.Int("rounds", 5, "rounds, interleaved")
	window = flag.Duration("window", time.Second, "of each measurement")
	only   = flag.String("only", "", "groups to run, by comma: overlay, stages, router, switch, path, scale, dp")
)

// group of networks that are compared, and what of them is measured.
type group struct {
	name        string
	build       func(ctx context.Context, exe string) (*bench, error)
	gauges      []gauge
	differences bool // print how much each figure is above the one before
}

// gauge takes one figure of a network.
type gauge struct {
	name string
	verb string // to print it
	take func(network) (float64, error)
}

// bench is a group's networks that are up; the first is what the others are
// divided by.
type bench struct {
	networks []network
	cleanup  []func() error
}

func (b *bench) later(f func() error) { b.cleanup = append(b.cleanup, f) }

// add keeps a network, or what is left of it, for cleaning up.
func (b *bench) add(n network, err error) error {
	if n.close != nil {
		b.later(n.close)
	}
	if err == nil {
		b.networks = append(b.networks, n)
	}
	return err
}

func (b *bench) close() {
	for _, f := range slices.Backward(b.cleanup) {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, "clean up:", err)
		}
	}
}

func main() { harness.Main("datapath/packetcost", run) }

func run(ctx context.Context, exe string) error {
	fmt.Printf("%s; %d rounds of %s\n\n", harness.Machine(), *rounds, *window)
	for _, g := range groups {
		if !wanted(g.name) {
			continue
		}
		if err := g.run(ctx, exe); err != nil {
			return fmt.Errorf("measure %s: %w", g.name, err)
		}
	}
	if !wanted("dp") {
		return nil
	}
	return experiments(ctx, exe)
}

func wanted(name string) bool {
	return *only == "" || slices.Contains(strings.Split(*only, ","), name)
}

func (g group) run(ctx context.Context, exe string) error {
	b, err := g.build(ctx, exe)
	if b != nil {
		defer b.close()
	}
	if err != nil {
		return err
	}
	samples := make([][]harness.Samples, len(b.networks))
	for i := range samples {
		samples[i] = make([]harness.Samples, len(g.gauges))
	}
	for range *rounds {
		for m, gauge := range g.gauges {
			for i, n := range b.networks {
				if err := ctx.Err(); err != nil {
					return err
				}
				value, err := gauge.take(n)
				if err != nil {
					return fmt.Errorf("%s of %s: %w", gauge.name, n.name, err)
				}
				samples[i][m] = append(samples[i][m], value)
			}
		}
		fmt.Fprint(os.Stderr, ".")
	}
	fmt.Fprintln(os.Stderr, g.name)
	for _, n := range b.networks {
		if err := profile(ctx, g.name, n.name, func() error { _, err := g.gauges[0].take(n); return err }); err != nil {
			return fmt.Errorf("%s of %s: %w", g.gauges[0].name, n.name, err)
		}
	}
	if g.differences {
		for _, figures := range samples {
			subtract(figures)
		}
	}
	g.report(b, samples)
	return nil
}

// report prints figures, and below them the ratios to the first network: the
// median of the rounds' ratios, which a drifting machine moves least.
func (g group) report(b *bench, samples [][]harness.Samples) {
	figures, ratios := harness.Table{Head: []string{g.name}}, harness.Table{Head: []string{g.name + ", of " + b.networks[0].name}}
	for _, m := range g.gauges {
		figures.Head, ratios.Head = append(figures.Head, m.name), append(ratios.Head, m.name)
	}
	for i, n := range b.networks {
		figure, ratio := []any{n.name}, []any{n.name}
		for m, gauge := range g.gauges {
			figure = append(figure, samples[i][m].Format(gauge.verb))
			ratio = append(ratio, samples[i][m].Over(samples[0][m]).Format("%.3f"))
		}
		figures.Add(figure...)
		ratios.Add(ratio...)
	}
	figures.Print(os.Stdout)
	if !g.differences {
		ratios.Print(os.Stdout)
	}
}

// subtract leaves of each figure what it is above the one before that is
// known, round by round.
func subtract(figures []harness.Samples) {
	for round := range figures[0] {
		before := 0.0
		for m := range figures {
			now := figures[m][round]
			figures[m][round] = now - before
			if !math.IsNaN(now) {
				before = now
			}
		}
	}
}
