// Command contention measures what a tenant gets of a server to which another
// puts the largest questions that 40 connections can: listing their leases,
// admission of a small network, and stages that begin on time.
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
	substrates  = flag.String("substrates", "demo,fat-tree:4,fat-tree:8", "to serve, one after another")
	connections = flag.Int("connections", 40, "of the tenant who asks large questions")
	seconds     = flag.Int("seconds", 30, "of each measurement; at most 60")
)

func main() { harness.Main("reservation/contention", run) }

// run measures each substrate quiet and attacked.
func run(ctx context.Context, exe string) error {
	table := harness.Table{Head: []string{"substrate, ms", "leases p50", "p99", "up p50", "p99", "most", "stage late p50", "most", "large answers", "longest"}}
	for _, name := range strings.Split(*substrates, ",") {
		for _, attackers := range []int{0, *connections} {
			f, err := measure(ctx, exe, name, attackers)
			if err != nil {
				return fmt.Errorf("measure %s: %w", name, err)
			}
			what := name
			if attackers > 0 {
				what += ", attacked"
			}
			table.Add(what, at(f.leases, .5), at(f.leases, .99), at(f.up, .5), at(f.up, .99), at(f.up, 1),
				at(f.late, .5), at(f.late, 1), len(f.large), at(f.large, 1))
		}
	}
	table.Print(os.Stdout)
	return nil
}

// figures are what was measured, in ms.
type figures struct{ leases, up, late, large harness.Samples }

func measure(ctx context.Context, exe, substrate string, attackers int) (f figures, err error) {
	s, err := serve(ctx, exe, substrate)
	if err != nil {
		return f, err
	}
	defer s.stop()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(*seconds)*time.Second)
	defer cancel()
	return s.load(ctx, attackers)
}

// at is a quantile, by nearest rank.
func at(s harness.Samples, quantile float64) string {
	if len(s) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := int(math.Ceil(quantile*float64(len(s)))) - 1
	return fmt.Sprintf("%.1f", sorted[max(rank, 0)])
}
