package main

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sublet/agent/control"
	"sublet/agent/profile"
	"sublet/bench/harness"
)

// scenario is a rate that is held while something changes.
type scenario struct {
	name    string
	mbit    float64
	unknown bool // nobody measured the function
	phases  []profile.Phase
}

// sizes are phases of frames of sizes; 0: none.
func sizes(length time.Duration, list ...int) (phases []profile.Phase) {
	for _, size := range list {
		phases = append(phases, profile.Phase{Size: size, Length: length})
	}
	return phases
}

// during has something be done when phases begin.
func during(phases []profile.Phase, begins ...func(int) error) []profile.Phase {
	for i, f := range begins {
		phases[i].Begins = f
	}
	return phases
}

func signalled(s unix.Signal) func(int) error {
	return func(pid int) error { return unix.Kill(pid, s) }
}

// beside has as many processes as are stated want the function's processor all the time,
// from a phase on; those of the phase before end.
func beside(ctx context.Context, running *[]*exec.Cmd, n int) func(int) error {
	return func(int) error {
		for _, c := range *running {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		*running = nil
		for range n {
			c := exec.CommandContext(ctx, "taskset", "-c", strconv.Itoa(runtime.NumCPU()-1), "sh", "-c", "while :; do :; done") // taskset becomes the shell
			if err := c.Start(); err != nil {
				return err
			}
			*running = append(*running, c)
		}
		return nil
	}
}

// scenarios are those of agent/control/sim that one function and a sender without a pace
// can be in, with rates that a core carries here.
func scenarios(ctx context.Context, length time.Duration, running *[]*exec.Cmd) []scenario {
	fine := 300 * time.Millisecond
	return []scenario{
		{name: "5 Mbit/s", mbit: 5, phases: sizes(length, 1514)},
		{name: "20 Mbit/s", mbit: 20, phases: sizes(length, 1514)},
		{name: "100 Mbit/s", mbit: 100, phases: sizes(length, 1514)},
		{name: "200 Mbit/s", mbit: 200, phases: sizes(length, 1514)},
		{name: "50 Mbit/s, 1514 to 512 bytes and back", mbit: 50, phases: sizes(length, 1514, 512, 1514)},
		{name: "10 Mbit/s, 1514 to 128 bytes and back", mbit: 10, phases: sizes(length, 1514, 128, 1514)},
		{name: "50 Mbit/s, 1514 to 1000 bytes, nobody measured it", mbit: 50, unknown: true, phases: sizes(length, 1514, 1000)},
		{name: "40 Mbit/s, six sizes in turn", mbit: 40, phases: sizes(length, 1514, 900, 512, 700, 256, 1400)},
		{name: "50 Mbit/s, bursts of 0.3 s", mbit: 50, phases: sizes(fine, 1514, 0, 1514, 0, 1514, 0, 1514, 0, 1514, 0, 1514, 0)},
		{name: "50 Mbit/s, 3 s on, 3 s off", mbit: 50, phases: sizes(3*time.Second, 1514, 0, 1514, 0, 1514)},
		{name: "40 Mbit/s, another size after 3 s off", mbit: 40, phases: sizes(3*time.Second, 1514, 0, 600, 0, 1200)},
		{name: "50 Mbit/s, a neighbour wants the core for a while", mbit: 50, phases: during(sizes(length, 1514, 1514, 1514), nil, beside(ctx, running, 1), beside(ctx, running, 0))},
		{name: "50 Mbit/s, the function becomes slower by half, and again as it was", mbit: 50, phases: during(sizes(length, 1514, 1514, 1514), nil, signalled(unix.SIGUSR1), signalled(unix.SIGUSR2))},
	}
}

// all runs the scenarios, one after another, and prints a row of each.
func all(ctx context.Context, length time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	argv := []string{self, copierCommand}
	known, err := profile.Measure(ctx, profile.Spec{Argv: argv, Shares: []float64{0.2, 0.5}, Sizes: []int{128, 512, 1514}, Window: time.Second})
	if err != nil {
		return err
	}
	fmt.Printf("a packet costs %.2f us and %.3f ns for each byte\n\n", 1e6*known.Profile.Fixed, 1e9*known.Profile.PerByte)
	t := harness.Table{Head: []string{"scenario", "error %", "reaction s", "reallocations", "processor", "used %"}}
	var running []*exec.Cmd
	defer func() { _ = beside(ctx, &running, 0)(0) }()
	for _, s := range scenarios(ctx, length, &running) {
		p := known.Profile
		if s.unknown {
			p = control.Profile{}
		}
		moments, err := profile.Hold(ctx, argv, p, 1e6*s.mbit, s.phases)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		t.Add(append([]any{s.name}, judged(moments, s)...)...)
	}
	t.Print(os.Stdout)
	return nil
}

// judged is the mean error of phases with frames, the longest reaction to a change, most
// reallocations in a phase, what was given over what the promise took, and what was used.
func judged(moments []profile.Moment, s scenario) []any {
	rate := 1e6 * s.mbit
	const samples = 10 // of a mean, a second
	var off, means, held, parts, given, needed, used float64
	n := 0
	var longest any = ""
	most := 0
	for i, phase := range s.phases {
		if phase.Size == 0 {
			continue
		}
		changes, seconds := 0, 0.0
		for _, m := range moments {
			if m.Phase != i {
				continue
			}
			if seconds += m.Seconds; m.Changed {
				changes++
			}
			if seconds <= min(steadyAfter, phase.Length.Seconds()/2) || m.Rate == 0 {
				continue
			}
			given, needed, used, parts = given+m.Share*m.Seconds, needed+m.Used*rate/m.Rate*m.Seconds, used+m.Used*m.Seconds, parts+m.Seconds
			if held += m.Rate / samples; n%samples == samples-1 {
				off, held, means = off+math.Abs(held-rate)/held, 0, means+1
			}
			n++
		}
		if most = max(most, changes); i > 0 && phase.Length > time.Second {
			longest = longer(longest, reaction(moments, i, rate))
		}
	}
	return []any{100 * off / means, longest, most, given / needed, 100 * used / parts}
}

// longer is the longer one of two reactions.
func longer(a, b any) any {
	x, known := a.(float64)
	y, too := b.(float64)
	switch {
	case a == "never" || b == "never":
		return "never"
	case known && too:
		return max(x, y)
	case too:
		return y
	}
	return a
}

func interfaceIndex(name string) (int, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	return i.Index, nil
}
