// Command pinning repeats Zhao's experiment with five processes on few cores (section
// 5.2.4): three switches in line and two functions, in two topologies, under the kernel's
// scheduler, under every pinning to two cores, and under those that agent/control/cores
// chooses from what the processes were measured to use. And what of a core switches and
// functions use at 100 Mbit/s (tables 5.1 and 5.2).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"sublet/agent/control/cores"
	"sublet/bench/harness"
)

var (
	window = flag.Duration("window", 500*time.Millisecond, "of a measurement")
	rounds = flag.Int("rounds", 5, "of measurements in turn")
)

// Arguments with which this program is a node and a load.
const (
	nodeCommand = "node"
	loadCommand = "load"
)

func main() {
	log.SetFlags(0)
	inside := map[string]func([]string) error{nodeCommand: node, loadCommand: load}
	if len(os.Args) > 1 && inside[os.Args[1]] != nil {
		if err := inside[os.Args[1]](os.Args[2:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	flag.Parse()
	if err := errors.Join(pinnings(context.Background()), shares(context.Background())); err != nil {
		log.Fatal(err)
	}
}

// A topology is what each node does: frames that come by one device leave by another.
// Devices are named LINK and LINK-, the two ends of a link.
type topology struct {
	name  string
	nodes []string
	hops  [][]string
}

// Of the thesis: a function on each of the first two switches, or both on the second one.
var topologies = []topology{
	{"T1: F1 at S1, F2 at S2", []string{"S1", "S2", "S3", "F1", "F2"}, [][]string{
		{"in-:f1", "f1:s12"}, {"s12-:f2", "f2:s23"}, {"s23-:out"}, {"f1-:f1-"}, {"f2-:f2-"}}},
	{"T2: both at S2", []string{"S1", "S2", "S3", "F1", "F2"}, [][]string{
		{"in-:s12"}, {"s12-:f1", "f1:f2", "f2:s23"}, {"s23-:out"}, {"f1-:f1-"}, {"f2-:f2-"}}},
}

// ran is a topology that runs.
type ran struct {
	*bed
	topology
}

// pinnings measures both topologies under all placements on two cores.
func pinnings(ctx context.Context) error {
	const all = 1 << (5 - 1) // the first node is on core 0: the other half is the same
	t := harness.Table{Head: []string{"topology", "kernel's scheduler, Mbit/s", "used of a core", "worst pinning", "best of 16", "gain %", "greedy", "gain %", "exact", "gain %"}}
	for _, top := range topologies {
		r, err := begin(ctx, top)
		if err != nil {
			return err
		}
		free, pinned := harness.Samples{}, make([]harness.Samples, all)
		var weights []float64
		for range *rounds {
			rate, used, err := r.free(ctx)
			if err != nil {
				return errors.Join(err, r.close())
			}
			free, weights = append(free, rate), used
			for k := range all {
				rate, err := r.pinned(ctx, 2*k)
				if err != nil {
					return errors.Join(err, r.close())
				}
				pinned[k] = append(pinned[k], rate)
			}
		}
		if err := r.close(); err != nil {
			return err
		}
		greedy, err := cores.Greedy(weights, make([]float64, 2))
		if err != nil {
			return err
		}
		exact, err := cores.Exact(weights, make([]float64, 2), cores.Steps)
		if err != nil {
			return err
		}
		base, worst, best := free.Median(), pinned[0].Median(), pinned[0].Median()
		for _, p := range pinned {
			worst, best = min(worst, p.Median()), max(best, p.Median())
		}
		gain := func(x float64) float64 { return 100 * (x/base - 1) }
		g, e := pinned[number(greedy.Core)].Median(), pinned[number(exact.Core)].Median()
		t.Add(top.name, base, words(weights), worst, best, gain(best), g, gain(g), e, gain(e))
	}
	t.Print(os.Stdout)
	fmt.Println()
	return nil
}

// number is that of a placement on two cores, the first node being on core 0.
func number(core []int) (k int) {
	for i, c := range core {
		if c != core[0] {
			k |= 1 << i
		}
	}
	return k / 2
}

func words(list []float64) string {
	var text []string
	for _, x := range list {
		text = append(text, fmt.Sprintf("%.2f", x))
	}
	return strings.Join(text, " ")
}

// shares are what switches and functions use of a core at 100 Mbit/s: each switch sees a
// packet twice. And with a firewall that drops half of the packets.
func shares(ctx context.Context) error {
	t := harness.Table{Head: []string{"bytes", "firewall drops %", "S1 %", "FW %", "S2 %", "NAT %", "S1 over FW", "S2 over NAT"}}
	for _, drops := range []int{0, 50} {
		r, err := begin(ctx, topology{"", []string{"S1", "FW", "S2", "NAT"}, [][]string{
			{"in-:f1", "f1:s12"}, {fmt.Sprintf("f1-:f1-:%d", drops)}, {"s12-:f2", "f2:out"}, {"f2-:f2-"}}})
		if err != nil {
			return err
		}
		for _, size := range []int{1514, 526} {
			used, err := r.at(ctx, size, 100)
			if err != nil {
				return errors.Join(err, r.close())
			}
			t.Add(size, drops, 100*used[0], 100*used[1], 100*used[2], 100*used[3], used[0]/used[1], used[2]/used[3])
		}
		if err := r.close(); err != nil {
			return err
		}
	}
	t.Print(os.Stdout)
	return nil
}
