// Command hold has the controller of agent/control hold the rate of a real
// function by the quota of its control group, while packets change size.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sublet/agent/profile"
	"sublet/bench/harness"
	"sublet/datapath/kernel"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == kernel.InitCommand {
		log.Fatal(kernel.RunLaunch())
	}
	mbit := flag.Float64("mbit", 50, "rate to hold, Mbit/s")
	seconds := flag.Float64("seconds", 10, "length of each phase")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: hold [flags] FUNCTION [ARGUMENT...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Args(), *mbit*1e6, time.Duration(*seconds*float64(time.Second))); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, argv []string, rate float64, length time.Duration) error {
	sizes := []int{1514, 512, 1514, 512}
	known, err := profile.Measure(ctx, profile.Spec{Argv: argv, Shares: []float64{0.2, 0.5}, Sizes: []int{512, 1514}, Window: time.Second})
	if err != nil {
		return err
	}
	var phases []profile.Phase
	for _, size := range sizes {
		phases = append(phases, profile.Phase{Size: size, Length: length})
	}
	moments, err := profile.Hold(ctx, argv, known.Profile, rate, phases)
	if err != nil {
		return err
	}
	fmt.Printf("a packet costs %.2f us and %.3f ns for each byte\n\n", 1e6*known.Profile.Fixed, 1e9*known.Profile.PerByte)
	t := harness.Table{Head: []string{"bytes", "offered Mbit/s", "held Mbit/s", "error %", "reaction s", "reallocations", "share %", "used %"}}
	for i, size := range sizes {
		t.Add(append([]any{size}, row(moments, i, rate)...)...)
	}
	t.Print(os.Stdout)
	return nil
}

// Bounds of judging, those of agent/control/sim.
const (
	steadyAfter = 2.0  // seconds after a phase begins
	right       = 0.05 // of the rate
)

// row judges a phase.
func row(moments []profile.Moment, phase int, rate float64) []any {
	var steady, offered, held, share, used float64
	var seconds []float64 // means
	changes, n := 0, 0
	time := 0.0
	for _, m := range moments {
		if m.Phase != phase {
			continue
		}
		if time += m.Seconds; m.Changed {
			changes++
		}
		if time <= steadyAfter {
			continue
		}
		steady += m.Seconds
		offered, held = offered+m.Offered*m.Seconds, held+m.Rate*m.Seconds
		share, used = share+m.Share*m.Seconds, used+m.Used*m.Seconds
		if n%10 == 0 {
			seconds = append(seconds, 0)
		}
		seconds[len(seconds)-1] += m.Rate / 10
		n++
	}
	if n%10 != 0 {
		seconds = seconds[:len(seconds)-1]
	}
	off := 0.0
	for _, mean := range seconds {
		off += math.Abs(mean-rate) / mean / float64(len(seconds))
	}
	return []any{offered / steady / 1e6, held / steady / 1e6, 100 * off, reaction(moments, phase, rate), changes, 100 * share / steady, 100 * used / steady}
}

// reaction is when the mean of three intervals is right for a second, or "never".
func reaction(moments []profile.Moment, phase int, rate float64) any {
	var last []float64
	time, since, good := 0.0, 0.0, 0
	for _, m := range moments {
		if m.Phase != phase {
			continue
		}
		time += m.Seconds
		if last = append(last, m.Rate); len(last) < 3 {
			continue
		}
		mean := (last[len(last)-1] + last[len(last)-2] + last[len(last)-3]) / 3
		if math.Abs(mean-rate) > right*rate {
			since, good = time, 0
		} else if good++; good == 8 {
			return since
		}
	}
	return "never"
}
