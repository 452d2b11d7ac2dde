// Command tunnel measures what a tunnel costs where packets are sent, by the
// method of Nakamura (thesis, section 4.2): one sender
// sends small packets, which are counted and dropped where they would leave the
// host, so that nothing but sending is measured. The cost of a tunnel is what a
// packet takes more than one without. All variants are measured in turn, on one
// processor, in processor time.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"sublet/bench/harness"
	"sublet/vnet"
)

var (
	rounds = flag.Int("rounds", 7, "rounds, interleaved")
	whole  = flag.Bool("ends", false, "measure from node to node on two hosts instead of what is sent")
	window = flag.Duration("window", 300*time.Millisecond, "of each measurement")
)

func main() { harness.Main("datapath/tunnel", run) }

// variant is a way of packets from a node to the host's interface.
type variant struct {
	name string
	base string // the variant that differs only in that it has no tunnel
	sender
}

func run(context.Context, string) error {
	if *whole {
		return endToEnd()
	}
	l, err := newHost()
	if err != nil {
		return err
	}
	defer l.close()
	variants, err := l.variants()
	if err != nil {
		return err
	}
	samples := make(map[string]harness.Samples)
	for range *rounds {
		for _, v := range variants {
			cost, err := l.measure(v.sender)
			if err != nil {
				return fmt.Errorf("measure %s: %w", v.name, err)
			}
			samples[v.name] = append(samples[v.name], cost)
		}
		fmt.Fprint(os.Stderr, ".")
	}
	fmt.Fprintln(os.Stderr)
	report(variants, samples)
	return nil
}

// kernelVariant is the one that others' tunnels are compared with.
const kernelVariant = "kernel VXLAN device"

// report prints the costs, and of each tunnel the share of the kernel's.
func report(variants []variant, samples map[string]harness.Samples) {
	fmt.Printf("%s; %d rounds of %s, UDP with 18 bytes of payload\n\n", harness.Machine(), *rounds, *window)
	fmt.Println("| way | ns/packet, median [min-max] | of it the tunnel | less than the kernel's VXLAN |")
	fmt.Println("|---|---|---|---|")
	added := make(map[string]float64)
	for _, v := range variants {
		if v.base != "" {
			added[v.name] = difference(samples[v.name], samples[v.base]).Median()
		}
	}
	for _, v := range variants {
		s := samples[v.name]
		fmt.Printf("| %s | %.0f [%.0f-%.0f] |", v.name, s.Median(), slices.Min(s), slices.Max(s))
		if v.base == "" {
			fmt.Println(" - | - |")
			continue
		}
		fmt.Printf(" %.0f | %.0f %% |\n", added[v.name], 100*(1-added[v.name]/added[kernelVariant]))
	}
}

// difference is round by round: what drifts between rounds cancels.
func difference(a, b harness.Samples) harness.Samples {
	d := make(harness.Samples, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}

// protocols that are measured against the kernel's VXLAN device.
var protocols = []vnet.Encapsulation{vnet.VXLAN, vnet.NSH, vnet.Geneve, vnet.NVGRE, vnet.GRETAP, vnet.GRE, vnet.IPIP, vnet.GUE}
