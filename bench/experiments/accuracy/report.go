package main

import (
	"fmt"
	"os"
	"slices"

	"sublet/bench/harness"
)

// report prints the table and what it comes to.
func report(results []*result) {
	table := harness.Table{Head: []string{
		"rate", "promise, path", "others send", "TCP/allocated", "UDP/allocated", "worst/minimum",
		"RTT loaded ms, p50", "p99", "loss at 0.9", "not kept",
	}}
	for _, r := range results {
		table.Add(r.rate, r.scenario, r.others, r.tcp.Format("%.4f"), r.udp.Format("%.4f"), worst(r.minimum),
			r.delay.Format("%.1f"), r.delay99.Format("%.1f"), loss(r.lost), fmt.Sprintf("%d of %d", r.late, len(r.tcp)))
	}
	table.Print(os.Stdout)
	fmt.Printf("Median (smallest to largest) of %d rounds and both directions; %s a rate, %d s for loss.\n", *rounds, *window, *seconds)
}

func worst(s harness.Samples) string {
	if len(s) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4f", slices.Min(s))
}

func loss(s harness.Samples) string {
	if len(s) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2g %%", 100*slices.Max(s))
}
