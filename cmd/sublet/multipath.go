package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sublet/fabric/spread"
	"sublet/vnet"
	"sublet/vnet/topology"
)

// multipathRun is what `bench multipath` was asked for.
type multipathRun struct {
	topology  string
	patterns  []string
	stated    bool // patterns were; else those that suit the topology are taken
	flows     []string
	methods   []string
	senders   int // flows of a sender, subflows of a connection
	runs      int
	seed      uint64
	servers   int // of each host of the topology, as a switch
	emulation emulationRun
}

func (a *app) benchMultipath() *cobra.Command {
	var b multipathRun
	c := a.noun(&cobra.Command{
		Use:   "multipath",
		Short: "Flows spread over the paths of a fabric by their senders, modelled or emulated",
		Long: `Flows that their senders spread over the paths of a fabric.

With the methods tree, hash, flow, hash:K and flow:K every host sends datagrams at its link's
rate in 20 flows, and the figure is the forwarding rate, received by sent. With
single, ecmp, ksp:K, even:K and coupled:K every host has one TCP connection of 8
subflows, and the figure is the gain over single shortest paths. ksp:K deals
subflows to the K shortest paths as sublet paths run does, by weights; even:K
gives every path as many, as Nakamura does. hash and flow are over all
shortest paths, hash:K and flow:K over the K shortest by weights.

It is a model of flows, not of packets: rates are fluid, streams are max-min
fair. The same seed gives the same numbers on every machine.

With --emulate it runs: in a lab whose switches are kernels with FRR, with slow
links, real packets, and the programs that put headers on and take them off.
late_ms and idle say whether the machine kept up: a run in which a sender was
late by more than a wire makes up for is repeated.`,
		Example: `  sublet bench multipath
  sublet bench multipath --emulate --pattern stride:4 --flows same --runs 1
  sublet bench multipath --topology jellyfish:20,4,16,1 --pattern random --method ecmp --method ksp:8 -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := errors.Join(a.checkFormat(), b.check()); err != nil {
				return err
			}
			b.stated = c.Flags().Changed("pattern")
			if b.emulation.on {
				return a.emulateMultipath(c.Context(), b)
			}
			return a.modelMultipath(b)
		},
	})
	c.Flags().StringVar(&b.topology, "topology", "fat-tree:4", "a substrate of switches with hosts at their edge: a name or a file")
	c.Flags().StringArrayVar(&b.patterns, "pattern", []string{"stride:1", "stride:2", "stride:4", "stride:8", "random", "same-id", "staggered:0.2,0.3"}, "who sends to whom: stride:HOSTS, random, same-id, staggered:EDGE,POD; may be repeated (default: those of these that suit the topology)")
	c.Flags().StringArrayVar(&b.flows, "flows", []string{"same", "random", "power"}, "how a sender's rate is shared among its flows: same, random, power; may be repeated")
	c.Flags().StringArrayVar(&b.methods, "method", []string{"tree", "hash", "flow"}, "tree, hash, flow, hash:K, flow:K; single, ecmp, ksp:K, even:K, coupled:K; may be repeated")
	c.Flags().IntVar(&b.senders, "count", 0, "flows per sender (default 20), or subflows per connection (default 8)")
	c.Flags().IntVar(&b.runs, "runs", 30, "draws of pattern and flows")
	c.Flags().Uint64Var(&b.seed, "seed", 1, "seed of the draws")
	c.Flags().IntVar(&b.servers, "servers", 0, "make every host of the topology a switch with this many hosts")
	b.emulation.flags(c)
	return c
}

func (b *multipathRun) check() error {
	if b.runs < 1 || b.runs > 100000 {
		return badInput{fmt.Errorf("--runs %d: choose 1 to 100000", b.runs)}
	}
	if b.senders < 0 || b.senders > 1000 {
		return badInput{fmt.Errorf("--count %d: choose 1 to 1000", b.senders)}
	}
	if err := b.emulation.check(); err != nil {
		return err
	}
	for _, d := range b.flows {
		if !slices.Contains(spread.Distributions, spread.Distribution(d)) {
			return badInput{fmt.Errorf("--flows %q: choose same, random or power", d)}
		}
	}
	return nil
}

// multipathRow is one figure; forwarding rates and gains exclude each other.
type multipathRow struct {
	Topology       string   `json:"topology"`
	Mode           string   `json:"mode"` // model or emulation
	Pattern        string   `json:"pattern"`
	Flows          string   `json:"flows"` // distribution, or number of subflows
	Method         string   `json:"method"`
	ForwardingRate *float64 `json:"forwarding_rate,omitempty"`
	Gain           *float64 `json:"gain,omitempty"`
	Runs           int      `json:"runs"`
	Spread         float64  `json:"spread"` // largest less smallest of the runs
	*emulated
}

func (a *app) modelMultipath(b multipathRun) error {
	_, fabric, err := a.readFabric(b)
	if err != nil {
		return err
	}
	patterns, err := b.suitable(fabric)
	if err != nil {
		return badInput{err}
	}
	rows := []multipathRow{}
	for _, pattern := range patterns {
		for _, method := range b.methods {
			more, err := b.model(fabric, pattern, method)
			if err != nil {
				return badInput{err}
			}
			rows = append(rows, more...)
		}
	}
	return a.print(rows, multipathTitle, tableOf(rows))
}

// suitable are the patterns that were stated, or those of the default that the
// topology has hosts for.
func (b multipathRun) suitable(f *spread.Fabric) (all []spread.Pattern, err error) {
	for _, text := range b.patterns {
		p, wrong := spread.ParsePattern(text, f.Groups)
		if wrong == nil {
			all = append(all, p)
		} else if b.stated || err == nil {
			err = wrong
		}
	}
	if b.stated || len(all) == 0 {
		return all, err
	}
	return all, nil
}

const multipathTitle = "TOPOLOGY MODE PATTERN FLOWS METHOD FORWARDED GAIN RUNS SPREAD"

// readFabric reads the topology.
func (a *app) readFabric(b multipathRun) (vnet.Substrate, *spread.Fabric, error) {
	sub, err := a.readSubstrate(b.topology)
	if err != nil {
		return sub, nil, err
	}
	if b.servers != 0 {
		if sub, err = topology.Serve(sub, b.servers); err != nil {
			return sub, nil, badInput{err}
		}
	}
	fabric, err := spread.NewFabric(sub)
	if err != nil {
		return sub, nil, badInput{fmt.Errorf("--topology %s: %w", b.topology, err)}
	}
	return sub, fabric, nil
}

// model gives a method's figures for one pattern: one for each distribution of
// datagrams, or one for streams.
func (b multipathRun) model(f *spread.Fabric, p spread.Pattern, method string) ([]multipathRow, error) {
	m, err := spread.ParseMethod(method)
	if err != nil {
		return nil, err
	}
	if m.Streams() {
		return []multipathRow{b.streams(f, p, m)}, nil
	}
	var rows []multipathRow
	for _, flows := range b.flows {
		rows = append(rows, b.datagrams(f, p, m, spread.Distribution(flows)))
	}
	return rows, nil
}

func (b multipathRun) datagrams(f *spread.Fabric, p spread.Pattern, m spread.Method, d spread.Distribution) multipathRow {
	row := multipathRow{Topology: b.topology, Mode: "model", Pattern: p.Name, Flows: string(d), Method: m.Name, Runs: b.runs}
	mean, spread := b.repeat(func(rng *rand.Rand) float64 {
		return f.Datagrams(p.Targets(f.Hosts(), rng), b.count(20), d, m, rng)
	})
	row.ForwardingRate, row.Spread = &mean, spread
	return row
}

func (b multipathRun) streams(f *spread.Fabric, p spread.Pattern, m spread.Method) multipathRow {
	single, _ := spread.ParseMethod("single")
	row := multipathRow{Topology: b.topology, Mode: "model", Pattern: p.Name, Flows: fmt.Sprint(b.count(8)), Method: m.Name, Runs: b.runs}
	mean, spread := b.repeat(func(rng *rand.Rand) float64 {
		targets := p.Targets(f.Hosts(), rng)
		return f.Stream(targets, b.count(8), m, rng) / f.Stream(targets, b.count(8), single, rng)
	})
	row.Gain, row.Spread = &mean, spread
	return row
}

func (b multipathRun) count(otherwise int) int {
	if b.senders > 0 {
		return b.senders
	}
	return otherwise
}

// repeat draws the runs; every figure has the same draws.
func (b multipathRun) repeat(run func(*rand.Rand) float64) (mean, spread float64) {
	values := make([]float64, b.runs)
	for i := range values {
		values[i] = run(rand.New(rand.NewPCG(b.seed, uint64(i))))
		mean += values[i] / float64(b.runs)
	}
	return mean, slices.Max(values) - slices.Min(values)
}

func tableOf(all []multipathRow) [][]string {
	var rows [][]string
	for _, r := range all {
		rows = append(rows, []string{r.Topology, r.Mode, strings.ReplaceAll(r.Pattern, " ", ""), r.Flows, r.Method, percent(r.ForwardingRate, 100, "%.1f%%"), percent(r.Gain, 1, "%.3f"), fmt.Sprint(r.Runs), fmt.Sprintf("%.3f", r.Spread)})
	}
	return rows
}

func percent(value *float64, times float64, verb string) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprintf(verb, *value*times)
}
