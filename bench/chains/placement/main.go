// Command placement compares greedy with exact placement of functions on cores:
// the published cases, random ones, and how long the exact one takes.
package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sublet/agent/control/cores"
	"sublet/bench/harness"
	"sublet/internal/splitmix"
)

func main() {
	published()
	random()
	joint()
}

func published() {
	t := harness.Table{Head: []string{"nodes", "cores", "weights", "greedy", "exact", "greedy above exact %"}}
	for _, c := range cores.Published() {
		idle := make([]float64, c.Cores)
		greedy, exact := place(c.Weights, idle)
		t.Add(c.Nodes, c.Cores, fmt.Sprint(c.Weights), greedy.Most, exact.Most, 100*(greedy.Most/exact.Most-1))
	}
	t.Print(os.Stdout)
}

func place(weights, idle []float64) (greedy, exact cores.Placement) {
	greedy, err := cores.Greedy(weights, idle)
	if err == nil {
		exact, err = cores.Exact(weights, idle, cores.Steps)
	}
	if err != nil {
		panic(err) // the weights are of this program
	}
	return greedy, exact
}

// random weights from 0.2 to 1, as a function uses of a core.
func random() {
	const runs = 200
	t := harness.Table{Head: []string{"functions", "cores", "greedy is not the best %", "mean excess %", "greatest excess %", "proved %", "exact: mean processor ms", "longest ms"}}
	source := splitmix.Source(1)
	for _, size := range [][2]int{{5, 2}, {7, 3}, {9, 4}, {12, 4}, {16, 4}, {24, 8}, {40, 8}} {
		var worse, proved int
		var excess, greatest float64
		var took, longest time.Duration
		for range runs {
			weights := make([]float64, size[0])
			for i := range weights {
				weights[i] = 0.2 + 0.8*source.Float()
			}
			begin := processorTime()
			greedy, exact := place(weights, make([]float64, size[1]))
			one := processorTime() - begin
			took, longest = took+one, max(longest, one)
			if more := greedy.Most/exact.Most - 1; more > 1e-9 {
				worse++
				excess, greatest = excess+more, max(greatest, more)
			}
			if exact.Proved {
				proved++
			}
		}
		t.Add(size[0], size[1], 100*float64(worse)/runs, 100*excess/float64(max(worse, 1)), 100*greatest, 100*float64(proved)/runs, milliseconds(took/runs), milliseconds(longest))
	}
	t.Print(os.Stdout)
}

// processorTime of this program: other work on the machine does not change it.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// joint is the published experiment with a choice of topology: two functions at
// three switches, on three cores.
func joint() {
	t := harness.Table{Head: []string{"topology", "passes of switches and functions", "passes on the fullest core", "of the best rate %"}}
	topologies := cores.Representative(3, 2, 2)
	costs, idle := []float64{11.0 / 12 * 1e-6, 1e-6}, make([]float64, 3)
	const perSwitch = 11.0 / 12 * 1e-6
	best, err := cores.Best(topologies, perSwitch, costs, idle, cores.Steps)
	if err != nil {
		panic(err)
	}
	for _, each := range topologies {
		one, _ := cores.Best([]cores.Topology{each}, perSwitch, costs, idle, cores.Steps)
		passes, _ := cores.Exact(each.Passes, idle, cores.Steps)
		t.Add(each, fmt.Sprint(each.Passes), passes.Most, 100*one.Rate/best.Rate)
	}
	t.Print(os.Stdout)
}
