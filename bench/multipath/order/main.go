// Command order measures what one TCP stream gets of a link over several paths whose
// order is kept, one direction after the other: two and three paths, of which the last is
// later than the others by so much.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"sublet/bench/harness"
	"sublet/lab"
	"sublet/lab/testbed"
	"sublet/measure/probe"
	"sublet/vnet"
	"sublet/vnet/file"
)

var (
	rounds   = flag.Int("rounds", 3, "measurements of each case")
	window   = flag.Duration("window", 3*time.Second, "of each measurement")
	only     = flag.Int("paths", 0, "so many only; 0: two and three")
	capacity = flag.Int("capacity", 100, "of a path, Mbit/s; nine tenths of it are asked for")
)

// later is how much later than the others the last path is.
var later = []time.Duration{0, time.Millisecond, 5 * time.Millisecond}

func main() { harness.Main("multipath/order", run) }

func run(ctx context.Context, exe string) error {
	fmt.Printf("%s\n\n| paths | last one later by | rate | part that one TCP stream gets, there | back |\n|---|---|---|---|---|\n", harness.Machine())
	cases := []int{2, 3}
	if *only > 0 {
		cases = []int{*only}
	}
	for _, paths := range cases {
		for _, by := range later {
			if err := measure(ctx, exe, paths, by); err != nil {
				return fmt.Errorf("%d paths, %s: %w", paths, by, err)
			}
		}
	}
	return nil
}

// measure prints the row of a case.
func measure(ctx context.Context, exe string, paths int, by time.Duration) (err error) {
	sub, err := file.ParseSubstrate("substrate", []byte(substrate(paths, by)))
	if err != nil {
		return err
	}
	t, err := testbed.StartSpec(ctx, lab.Spec{Exe: exe, Substrate: sub, Delays: true})
	if err != nil {
		return err
	}
	r := &harness.Lab{Testbed: t}
	defer func() {
		if stopped := r.Stop(); err == nil {
			err = stopped
		}
	}()
	asked := vnet.Rate(paths**capacity) * vnet.Mbit * 9 / 10
	l, err := r.Up(ctx, fmt.Sprintf("network: wide\nnodes: [{name: x, host: h1}, {name: y, host: h2}]\nlinks: [{ends: [x, y], rate: %s, paths: {count: %d, order: kept}}]\n", asked, paths))
	if err != nil {
		return err
	}
	var got [2]harness.Samples
	for range *rounds {
		targets, err := r.Targets(l)
		if err != nil {
			return err
		}
		for d := range got {
			v, err := probe.Check(ctx, l, r.Starter(l.ID()), probe.Options{Targets: targets[d : d+1], Streams: 1, Duration: *window, SkipUDP: true, SkipLoss: true})
			if err != nil {
				return err
			}
			got[d] = append(got[d], float64(v.Links[0].TCP)/float64(asked))
		}
		fmt.Fprint(os.Stderr, ".")
	}
	fmt.Printf("| %d | %s | %s | %s | %s |\n", paths, by, asked, got[0].Format("%.3f"), got[1].Format("%.3f"))
	return nil
}

// substrate is two hosts with so many ways between them, each by a host.
func substrate(paths int, by time.Duration) string {
	var b strings.Builder
	b.WriteString("hosts:\n  - {name: h1, cpu: 4, memory: 4GiB}\n  - {name: h2, cpu: 4, memory: 4GiB}\n")
	for i := range paths {
		fmt.Fprintf(&b, "  - {name: m%d, cpu: 4, memory: 4GiB}\n", i)
	}
	b.WriteString("links:\n")
	for i := range paths {
		latency := ""
		if i == paths-1 && by > 0 {
			latency = fmt.Sprintf(", latency: %s", by)
		}
		fmt.Fprintf(&b, "  - {ends: [h1, m%[1]d], capacity: %[3]dMbit%[2]s}\n  - {ends: [m%[1]d, h2], capacity: %[3]dMbit}\n", i, latency, *capacity)
	}
	return b.String()
}
