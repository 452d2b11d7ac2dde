package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
	"github.com/spf13/cobra"

	"sublet/measure/ofload"
	"sublet/openflow/channel"
	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

// openflowBench is what `bench openflow` was asked for.
type openflowBench struct {
	connect, mode, version string
	pid                    int
	ofload.Config
}

// openflowVersions are those that switches can speak, as headers have them.
var openflowVersions = map[string]uint8{"1.0": of10.Version, "1.3": of13.Version}

// openflowLoad is what it answers.
type openflowLoad struct {
	Mode string `json:"mode"`
	ofload.Result
	Generator float64 `json:"generator_cpu_s"` // of this process, warm-up included
	CPU       float64 `json:"controller_cpu_s,omitempty"`
	PerCPU    float64 `json:"responses_per_cpu_s,omitempty"` // per second of the controller's processors
}

func (a *app) benchOpenFlow() *cobra.Command {
	var b openflowBench
	c := a.noun(&cobra.Command{
		Use:   "openflow",
		Short: "Load an OpenFlow controller with switches that are played",
		Long: `Load an OpenFlow controller with switches that are played, in one thread, and time
its answers (flow-mods and packet-outs) to packets they hand over. The switches
speak --version 1.3 or 1.0.

--mode latency keeps one packet of each switch waiting for its answer, --mode
throughput as many as --outstanding says. --rate R instead hands over R packets a
second whether answers come or not: latencies count from when a packet was due,
so that a controller which stops is not measured by fewer packets.

--hosts is how many addresses are behind each switch; 0 gives every packet new
ones, which no controller can remember all. --newcomer lets another switch join
after half of the time and says how it fares; --malformed lets one send what no
switch would. --pid, of a controller on this machine, gives responses per second
of its processors. Pin generator and controller to processors of their own
(taskset) to compare controllers.`,
		Example: "  sublet bench openflow --connect tcp:127.0.0.1:6653 --switches 64 --mode throughput --outstanding 32\n" +
			"  sublet bench openflow --connect tcp:127.0.0.1:6653 --switches 16 --rate 20000 --outstanding 64 -o json",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if err := b.check(c); err != nil {
				return err
			}
			return a.loadOpenFlow(c.Context(), b)
		},
	})
	f := c.Flags()
	f.StringVar(&b.connect, "connect", "", "the controller: tcp:HOST:PORT")
	f.StringVar(&b.version, "version", "1.3", "OpenFlow version of the switches: 1.3 or 1.0")
	f.IntVar(&b.Switches, "switches", 1, "how many switches to play")
	f.StringVar(&b.mode, "mode", "latency", "latency or throughput")
	f.IntVar(&b.Outstanding, "outstanding", 1, "packets of a switch that may wait for answers (with --mode throughput 64, if not stated)")
	f.Float64Var(&b.Rate, "rate", 0, "packets a second of all switches together, whether answers come or not; 0: as fast as answers come")
	f.IntVar(&b.Hosts, "hosts", 100, "addresses behind each switch; 0: new ones for every packet")
	f.DurationVar(&b.Duration, "duration", 5*time.Second, "how long to count")
	f.DurationVar(&b.Warmup, "warmup", time.Second, "how long to load before")
	f.BoolVar(&b.Newcomer, "newcomer", false, "let another switch join after half of the duration")
	f.BoolVar(&b.Malformed, "malformed", false, "let another connection send nonsense meanwhile")
	f.Uint64Var(&b.Seed, "seed", 1, "number that random addresses and nonsense are made from")
	f.IntVar(&b.pid, "pid", 0, "process of the controller, to measure its processor time")
	return c
}

// check reads what was typed.
func (b *openflowBench) check(c *cobra.Command) (err error) {
	flags := c.Flags()
	if b.mode == "throughput" && !flags.Changed("outstanding") {
		b.Outstanding = 64
	}
	const longest = 24 * time.Hour
	switch {
	case b.mode != "latency" && b.mode != "throughput":
		err = fmt.Errorf("--mode %q: write latency or throughput", b.mode)
	case openflowVersions[b.version] == 0:
		err = fmt.Errorf("--version %q: write 1.3 or 1.0", b.version)
	case b.Switches < 1 || b.Switches > ofload.MostSwitches:
		err = fmt.Errorf("--switches %d: play 1 to %d", b.Switches, ofload.MostSwitches)
	case b.Outstanding < 1 || b.Outstanding > ofload.MostOutstanding:
		err = fmt.Errorf("--outstanding %d: let 1 to %d wait", b.Outstanding, ofload.MostOutstanding)
	case b.Rate < 0 || b.Rate > 1e8:
		err = fmt.Errorf("--rate %g: write packets a second, or 0 for as fast as answers come", b.Rate)
	case b.Hosts < 0 || b.Hosts == 1 || b.Hosts > 1<<20:
		err = fmt.Errorf("--hosts %d: write 2 to %d, or 0 for new addresses with every packet", b.Hosts, 1<<20)
	case b.Duration <= 0 || b.Duration > longest || b.Warmup < 0 || b.Warmup > longest:
		err = fmt.Errorf("--duration %s --warmup %s: state how long to count, at most a day", b.Duration, b.Warmup)
	}
	if err != nil {
		return badInput{err}
	}
	b.Version = openflowVersions[b.version]
	b.Connect, err = controllerAt(b.connect)
	return err
}

// controllerAt reads tcp:HOST:PORT.
func controllerAt(text string) (netip.AddrPort, error) {
	t, err := channel.ParseTarget(text)
	if err != nil || t.Secure || t.Passive {
		return netip.AddrPort{}, badInput{fmt.Errorf("--connect %q: write tcp:HOST:PORT", text)}
	}
	return resolve("--connect", t.Address)
}

func (a *app) loadOpenFlow(ctx context.Context, b openflowBench) error {
	before, err := cpuSeconds(b.pid)
	if err != nil {
		return badInput{fmt.Errorf("--pid %d: %w", b.pid, err)}
	}
	began := time.Now()
	result, err := ofload.Run(ctx, b.Config)
	if err != nil {
		return err
	}
	answer := openflowLoad{Mode: b.mode, Result: result}
	if answer.Generator, err = cpuSeconds(os.Getpid()); err != nil {
		return err
	}
	if b.pid != 0 {
		after, err := cpuSeconds(b.pid)
		if err != nil {
			return fmt.Errorf("--pid %d: %w", b.pid, err)
		}
		// Warm-up is measured too: what is counted is its part of the time.
		answer.CPU = (after - before) * result.Seconds / time.Since(began).Seconds()
		answer.PerCPU = float64(result.Responses) / answer.CPU
	}
	return a.printOpenFlowLoad(answer)
}

// cpuSeconds is the processor time of a process so far; that of none is 0.
func cpuSeconds(pid int) (float64, error) {
	if pid == 0 {
		return 0, nil
	}
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	return stat.CPUTime(), err
}

func (a *app) printOpenFlowLoad(l openflowLoad) error {
	whole := func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }
	row := []string{
		strconv.Itoa(l.Switches), strconv.Itoa(l.Outstanding), whole(l.PerSecond), whole(l.PerCPU), whole(l.Latency.P50), whole(l.Latency.P99),
		whole(l.Latency.Max), strconv.FormatFloat(l.Jain, 'f', 4, 64), fmt.Sprint(l.Unanswered), fmt.Sprint(l.Errors),
	}
	if err := a.print(l, "SWITCHES OUTSTANDING RESPONSES/S PER-CPU-S P50-us P99-us MAX-us JAIN UNANSWERED ERRORS", [][]string{row}); err != nil || a.format != "table" {
		return err
	}
	if n := l.Newcomer; n != nil {
		fmt.Fprintf(a.out, "newcomer: greeted after %.1f ms, answered first after %.1f ms, %.0f%% of what others got\n", n.GreetedMS, n.FirstMS, 100*n.Share)
	}
	if l.Malformed != nil {
		fmt.Fprintf(a.out, "nonsense: %s closed\n", number(*l.Malformed, "connection"))
	}
	return nil
}
