// Command replay replays instances of the public embedding benchmark one after another
// and prints their figures as a table, with the processor time of the thread
// instead of wall time, so that it can be trusted on a busy machine:
//
//	go run ./bench/embedding/replay FILE...
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/bench/harness"
	"sublet/embed"
	"sublet/embed/replay"
	"sublet/vnet"
)

var (
	budget    = flag.Duration("budget", embed.DefaultBudget, "of a request")
	seed      = flag.Uint64("seed", 0, "of the search")
	profile   = flag.String("profile", "", "write where processor time went to this file")
	splitting = flag.Bool("split", false, "links may be split over several paths")
	objective = flag.String("objective", string(vnet.RevenueOverCost), "of the embedding")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	runtime.LockOSThread()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			log.Fatal("embedding/replay: ", err)
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			log.Fatal("embedding/replay: ", err)
		}
		defer pprof.StopCPUProfile()
	}
	table := harness.Table{Head: []string{"instance", "accepted", "requests", "revenue/cost", "long-term revenue", "ms mean", "ms p99"}}
	for _, name := range flag.Args() {
		f, err := replayFile(name)
		if err != nil {
			log.Fatal("embedding/replay: ", err)
		}
		table.Add(strings.TrimSuffix(filepath.Base(name), ".txt"), f.Accepted, f.Requests,
			fmt.Sprintf("%.3f", f.RevenueCost), fmt.Sprintf("%.1f", f.LongTermRevenue), fmt.Sprintf("%.2f", f.Mean), fmt.Sprintf("%.2f", f.P99))
	}
	table.Print(os.Stdout)
}

func replayFile(name string) (replay.Figures, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return replay.Figures{}, err
	}
	instance, err := replay.Parse(name, text)
	if err != nil {
		return replay.Figures{}, err
	}
	return replay.Run(instance, replay.Options{
		Embed:     embed.Options{Budget: *budget, Seed: *seed},
		Objective: vnet.Objective(*objective),
		Split:     *splitting,
		Clock:     threadTime,
	})
}

// threadTime is the processor time this thread has used.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
