// Command scale measures what an admission costs on large substrates that
// carry many leases: fat-trees and Jellyfish of 100 to more than 10,000 nodes,
// up to 100,000 leases, 12 for each node, booked over a month, and then requests of 10 nodes, one
// after another, decided by the server's own book (lease.Book) without its
// store and network. One substrate in a process, so that peak memory is its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strings"

	"sublet/bench/harness"
)

var (
	substrates = flag.String("substrates", "fat-tree:6 fat-tree:14 fat-tree:20 fat-tree:32 fat-tree:36 jellyfish:25,10,75,1 jellyfish:250,16,750,1 jellyfish:750,20,2250,1 jellyfish:2000,24,8000,1", "names of substrates, by spaces")
	leases     = flag.Int("leases", 100_000, "leases to book first, at most")
	density    = flag.Int("density", 12, "of them for each node at most: a small substrate does not hold a hundred thousand")
	asks       = flag.Int("asks", 1000, "admissions to measure")
	one        = flag.String("one", "", "measure this substrate in this process")
	profile    = flag.String("cpuprofile", "", "with -one: write where processor time goes to this file")
	drawing    = flag.String("figure", "", "draw the times over the nodes into this SVG file")
	mid        = flag.Bool("mid", false, "with -one: measure in the middle of the month, requests that start at once beside the leases that run then")
	seed       = flag.Uint64("seed", 1, "of the requests")
)

func main() {
	flag.Parse()
	if *one == "" {
		harness.Main("embedding/scale", all)
		return
	}
	defer profiled(*profile)()
	if err := measure(os.Stdout, *one); err != nil {
		fmt.Fprintln(os.Stderr, "embedscale:", err)
		os.Exit(1)
	}
}

// all measures each substrate in a process of its own.
func all(ctx context.Context, _ string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Printf("%s\n\n", harness.Machine())
	t := harness.Table{Head: head}
	var points []point
	for _, name := range strings.Fields(*substrates) {
		c := exec.CommandContext(ctx, self, "-one", name, "-leases", fmt.Sprint(*leases), "-density", fmt.Sprint(*density), "-asks", fmt.Sprint(*asks), "-seed", fmt.Sprint(*seed))
		c.Stderr = os.Stderr
		out, err := c.Output()
		if err != nil {
			return fmt.Errorf("measure %s: %w", name, err)
		}
		cells := strings.Split(strings.TrimSpace(string(out)), "|")
		if len(cells) != len(head) {
			return errors.New(name + ": " + string(out))
		}
		fmt.Fprintln(os.Stderr, strings.Join(cells, " | ")) // the next may take long
		t.Rows = append(t.Rows, cells)
		points = append(points, pointOf(cells))
	}
	t.Print(os.Stdout)
	fmt.Println()
	plot(os.Stdout, points)
	if *drawing == "" {
		return nil
	}
	return draw(*drawing, points)
}

// heap is what is in use after a collection, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// profiled notes where processor time goes, until its result is called.
func profiled(name string) (stop func()) {
	if name == "" {
		return func() {}
	}
	f, err := os.Create(name)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "embedscale:", err)
		os.Exit(1)
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}
}
