// Command accuracy measures how exactly leases get what they were allocated
// while other leases, and best effort, saturate the same substrate links.
//
//	h1 --+
//	h2 --+-- s1      measured: a@h1 - b@h2 (two hosts), a@h1 - b@h1 (one host)
//	h3 --+           others:   h1 - h3, h3 - h2, h1 - h1, best effort h1 - h2
//
// Rates of 10 Mbit/s to 1 Gbit/s; a static rate, and a guaranteed minimum with
// a larger maximum; the others send TCP, or UDP at 1.5 times what they have.
package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"sublet/bench/harness"
	"sublet/vnet"
)

var (
	rates   = flag.String("rates", "10Mbit,30Mbit,100Mbit,300Mbit,1Gbit", "rates to measure at")
	rounds  = flag.Int("rounds", 3, "rounds, interleaved")
	window  = flag.Duration("window", 3*time.Second, "of one measurement of a rate")
	seconds = flag.Int("seconds", 60, "of the measurement of loss; 0: none")
)

func main() { harness.Main("experiments/accuracy", run) }

func run(ctx context.Context, exe string) error {
	fmt.Printf("%s\n\n", harness.Machine())
	var results []*result
	defer func() { report(results) }() // also when it ends early
	for _, text := range strings.Split(*rates, ",") {
		rate, err := vnet.ParseRate(text)
		if err != nil {
			return err
		}
		r, err := measure(ctx, exe, rate)
		results = append(results, r...)
		if err != nil {
			return fmt.Errorf("at %s: %w", rate, err)
		}
	}
	return nil
}
