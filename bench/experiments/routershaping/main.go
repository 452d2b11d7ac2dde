// Command routershaping repeats the experiment of Vicat-Blanc Primet, Anhalt
// and Koslovski ("Exploring the virtual infrastructure service concept in
// Grid'5000", section IV.B), called RC-1 in docs/research/measurements.md: three virtual
// routers on one machine, one per network, capped at 100, 150 and 200 Mbit/s,
// three flows, congestion factors (offered/allocated) 0.9, 1.0 and 1.2.
//
// Compared are, interleaved: one plain Linux router with HTB on its egress
// interface, a namespace per router with the same HTB below them, and Sublet,
// which shapes every virtual link before the router and again, classful, at
// the physical interface.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"sublet/bench/harness"
	"sublet/measure/probe"
	"sublet/vnet"
)

var (
	seconds = flag.Int("seconds", 60, "of each run, as in the article")
	rounds  = flag.Int("rounds", 1, "rounds, interleaved")
)

// caps of the three networks (R_alloc).
var caps = []vnet.Rate{100 * vnet.Mbit, 150 * vnet.Mbit, 200 * vnet.Mbit}

// factors are offered rate / cap (CF).
var factors = []float64{0.9, 1.0, 1.2}

// setup is a configuration that is up.
type setup struct {
	name    string
	start   probe.Starter
	targets []probe.Target // of the three flows
	stop    func() error
}

func main() { harness.Main("experiments/routershaping", run) }

func run(ctx context.Context, exe string) error {
	fmt.Printf("%s\n\n", harness.Machine())
	setups := []func(context.Context, string) (setup, error){linuxRouter, namespaceRouters, sublet}
	table := make(results)
	for range *rounds {
		for _, build := range setups {
			s, err := build(ctx, exe)
			if err == nil {
				err = table.measure(ctx, s)
			}
			if s.stop != nil {
				if stopped := s.stop(); err == nil {
					err = stopped
				}
			}
			if err != nil {
				return fmt.Errorf("measure %s: %w", s.name, err)
			}
		}
	}
	table.report()
	return nil
}

// key of a result: configuration, protocol, factor, flow.
type key struct {
	setup  string
	tcp    bool
	factor float64
	flow   int
}

// outcome of one flow over all rounds.
type outcome struct{ rate, loss harness.Samples }

type results map[key]*outcome

// measure runs all factors with UDP and TCP, three flows at a time.
func (r results) measure(ctx context.Context, s setup) error {
	for _, factor := range factors {
		for _, tcp := range []bool{false, true} {
			opt := probe.Options{Targets: s.targets, Duration: time.Duration(*seconds) * time.Second}
			flows, err := probe.Run(ctx, s.start, opt, probe.Load{TCP: tcp, Part: factor})
			if err != nil {
				return err
			}
			for i, f := range flows {
				k := key{s.name, tcp, factor, i}
				if r[k] == nil {
					r[k] = &outcome{}
				}
				r[k].rate = append(r[k].rate, f.Rate.Mbps())
				r[k].loss = append(r[k].loss, 100*f.Loss)
			}
			fmt.Fprint(os.Stderr, ".")
		}
	}
	fmt.Fprintln(os.Stderr, s.name)
	return nil
}
