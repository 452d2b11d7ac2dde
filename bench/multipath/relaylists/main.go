// Command relaylists times the computation of all relay lists of one switch, by
// fabric size, and compares them with the lists of Nakamura (thesis,
// chapter 5): random graphs of as many
// switches and hosts as a fat-tree of the same ports has, k shortest paths.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sublet/bench/harness"
	"sublet/fabric"
	"sublet/fabric/spread"
	"sublet/vnet/topology"
	"sublet/vxswitch/figure"
)

var (
	k      = flag.Int("k", 8, "shortest paths to each switch")
	rounds = flag.Int("rounds", 5, "of each size; the median is given")
	image  = flag.String("svg", "", "file for a plot of times over sizes")
)

// ports of switches: 5/4 ports^2 of them (Nakamura, thesis, section 5.5.3.1). 40: 2,000.
var ports = []int{4, 6, 8, 12, 16, 24, 32, 40}

func main() {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	fmt.Printf("%s; k = %d, processor time of one thread, median of %d\n\n", harness.Machine(), *k, *rounds)
	table := harness.Table{Head: []string{"ports", "switches", "hosts", "time", "weights", "headers", "most", "lists that follow their path", "headers of the published lists", "that follow their path"}}
	line := figure.Line{Name: "all lists of one switch"}
	for _, p := range ports {
		n, hosts := 5*p*p/4, p*p*p/4
		f, at, err := randomFabric(n, p, hosts)
		if err != nil {
			return err
		}
		took, dealing := median(f, at)
		s, err := count(f)
		if err != nil {
			return err
		}
		table.Add(p, n, hosts, took.Round(10*time.Microsecond), dealing.Round(10*time.Microsecond), f2(s.relays), s.most, percent(s.follow), f2(s.theirs), percent(s.theirFollow))
		line.X, line.Y, line.Half = append(line.X, float64(n)), append(line.Y, took.Seconds()), append(line.Half, math.NaN())
		line.Labels = append(line.Labels, strconv.Itoa(n))
	}
	table.Print(os.Stdout)
	if *image == "" {
		return nil
	}
	return draw(line)
}

func f2(x float64) string      { return fmt.Sprintf("%.2f", x) }
func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// randomFabric is one, and how many hosts each switch has.
func randomFabric(switches, ports, hosts int) (*fabric.Fabric, []int, error) {
	sub, err := topology.Jellyfish(switches, ports, hosts, 1)
	if err != nil {
		return nil, nil, err
	}
	f, err := spread.NewFabric(sub)
	if err != nil {
		return nil, nil, err
	}
	return f.Switches(), f.HostsAt(), nil
}

// median times of all lists of switch 0, nothing of the fabric computed before,
// and then of the weights of their paths.
func median(f *fabric.Fabric, hosts []int) (lists, weights time.Duration) {
	times := [2][]time.Duration{make([]time.Duration, *rounds), make([]time.Duration, *rounds)}
	for i := range *rounds {
		fresh := f.Without(func(int, fabric.Arc) bool { return false })
		paths := make([][]fabric.Path, fresh.Len())
		runtime.GC()
		start := spent()
		for to := 1; to < fresh.Len(); to++ {
			paths[to] = fresh.Shortest(0, to, *k)
			for _, p := range paths[to] {
				fresh.Pin(p)
			}
		}
		listed := spent()
		prices := fresh.Prices(hosts)
		for _, p := range paths {
			fresh.Weights(p, prices)
		}
		times[0][i], times[1][i] = listed-start, spent()-listed
	}
	slices.Sort(times[0])
	slices.Sort(times[1])
	return times[0][*rounds/2], times[1][*rounds/2]
}

// spent is the process's time on processors.
func spent() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// sums of lists: mean headers, and which part follows its path.
type sums struct {
	relays, follow, theirs, theirFollow float64
	most                                int
}

// samples of source switches.
const samples = 20

func count(f *fabric.Fabric) (s sums, err error) {
	lists := 0.0
	for i := range min(samples, f.Len()) {
		from := i * f.Len() / min(samples, f.Len())
		for to := range f.Len() {
			if to == from {
				continue
			}
			paths := f.Shortest(from, to, *k)
			published := fabric.PrefixTreeLists(paths)
			for j, p := range paths {
				lists++
				s.add(f, p, published[j])
			}
		}
	}
	s.relays, s.follow, s.theirs, s.theirFollow = s.relays/lists, s.follow/lists, s.theirs/lists, s.theirFollow/lists
	if s.follow != 1 {
		return s, errors.New("a list does not pin its path")
	}
	return s, nil
}

func (s *sums) add(f *fabric.Fabric, p fabric.Path, published fabric.List) {
	ours := f.Pin(p)
	s.relays, s.theirs, s.most = s.relays+float64(len(ours)), s.theirs+float64(len(published)), max(s.most, len(ours))
	if f.Follow(p, ours) == nil {
		s.follow++
	}
	if f.Follow(p, published) == nil {
		s.theirFollow++
	}
}

func draw(line figure.Line) (err error) {
	file, err := os.Create(*image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	chart := figure.Chart{Title: fmt.Sprintf("Relay lists of one switch to all others, k = %d", *k), X: "switches", Y: "seconds of one core", Lines: []figure.Line{line}}
	return figure.Draw(file, "svg", []figure.Chart{chart})
}
