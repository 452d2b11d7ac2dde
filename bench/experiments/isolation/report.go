package main

import (
	"fmt"
	"math"
	"os"

	"sublet/bench/harness"
)

// report prints every flow, and what network 1 felt of network 2.
func (b bench) report() {
	fmt.Printf("Rates in Mbit/s of Ethernet frames; caps of VNet 1: 50 and 100, of VNet 2: 100 and 200; %d round(s) of %d s.\n\n", *rounds, *seconds)
	table := harness.Table{Head: []string{"case", "network", "flow", "cap", "offered", "UDP", "UDP loss %", "expected loss %", "TCP", "published"}}
	for c, k := range cases {
		for i := range caps {
			for f := range caps[i] {
				offered, published := k.offered[i][f], ""
				if i+f == 0 {
					published = k.published
				}
				udp, tcp := b.outcomes[key{c, false, i, f}], b.outcomes[key{c, true, i, f}]
				table.Add(k.name, fmt.Sprint("VNet ", i+1), fmt.Sprint("f", f+1), caps[i][f], offered,
					udp.rate.Format("%.1f"), udp.loss.Format("%.3f"), fmt.Sprintf("%.1f", 100*max(0, 1-caps[i][f]/offered)), tcp.rate.Format("%.1f"), published)
			}
		}
	}
	table.Print(os.Stdout)
	fmt.Println("Isolation: what the flows of VNet 1, offered the same in cases 1, 3 and 4, got of what they offered.")
	fmt.Println()
	isolation := harness.Table{Head: []string{"protocol", "flow", "case 1", "case 3", "case 4", "case 4 - case 1"}}
	for _, tcp := range []bool{false, true} {
		for f := range caps[0] {
			part := func(c int) float64 { return b.outcomes[key{c, tcp, 0, f}].part.Median() }
			isolation.Add(map[bool]string{false: "UDP", true: "TCP"}[tcp], fmt.Sprint("f", f+1),
				fmt.Sprintf("%.4f", part(0)), fmt.Sprintf("%.4f", part(2)), fmt.Sprintf("%.4f", part(3)),
				fmt.Sprintf("%+.4f", math.Round(1e4*(part(3)-part(0)))/1e4))
		}
	}
	isolation.Print(os.Stdout)
}
