// Command vxswitch gauges a live hosting switch beside Open vSwitch's userspace
// datapath, a Linux bridge and a C loop that only copies. All are up at once and measured in turn, round after round;
// whose turn it is not is stopped, because Open vSwitch's threads never rest.
//
// A forwarder's packets and bits are counted per second of its own processor
// time, a stream's per second of its ends' as well: what the pipeline carries
// on two processors of its own is the smaller of both. So other work on the
// machine does not change the ratios.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/bench/harness"
	"sublet/measure/pktgen"
)

var (
	rounds = flag.Int("rounds", 5, "rounds, interleaved")
	only   = flag.String("only", "", "networks to measure, by comma; the first of all is what ratios are of")
	window = flag.Duration("window", time.Second, "of each measurement")
)

func main() { harness.Main("datapath/vxswitch", run) }

// kinds are the networks, the product first.
var kinds = []struct {
	name  string
	build func(*network, string, string) error
}{
	{"vxswitch", vxswitch}, {"vxveth", vxswitchOnVeth("packet")}, {"vxxdp", vxswitchOnVeth("xdp")}, {"copy", copyLoop}, {"bridge", bridge}, {"ovs", openVSwitch("system")}, {"ovsxdp", openVSwitch("afxdp")},
}

func run(ctx context.Context, exe string) error {
	dir, err := os.MkdirTemp("/run", "sl-vxbench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("%s; %d rounds of %s\n\n", harness.Machine(), *rounds, *window)
	if *neighbour {
		return neighbours(ctx, exe, dir)
	}
	var all []*network
	for _, k := range kinds {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), k.name) {
			continue
		}
		n, err := up(k.name, k.build, exe, dir)
		if err != nil {
			fmt.Printf("%s is left out: %v\n\n", k.name, err)
			continue
		}
		defer n.close()
		n.signal(unix.SIGSTOP)
		all = append(all, n)
	}
	return series(ctx, all)
}

// figures are a network's, one of each round.
type figures struct{ packets, bits, p50, p99 harness.Samples }

func series(ctx context.Context, all []*network) error {
	got := make([]figures, len(all))
	for range *rounds {
		for i, n := range all {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			n.signal(unix.SIGCONT)
			err := got[i].round(n)
			n.signal(unix.SIGSTOP)
			if err != nil {
				return fmt.Errorf("measure %s: %w", n.name, err)
			}
		}
	}
	fmt.Println("| network | 60 B, Mpps | of vxswitch | TCP, Gbit/s | of vxswitch | round trip p50, us | p99, us |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for i, n := range all {
		f, base := got[i], got[0]
		fmt.Printf("| %s | %.3f | %s | %.2f | %s | %.0f | %.0f |\n", n.name, f.packets.Median()/1e6, f.packets.Over(base.packets).Format("%.2f"),
			f.bits.Median()/1e9, f.bits.Over(base.bits).Format("%.2f"), f.p50.Median(), f.p99.Median())
	}
	return nil
}

func (f *figures) round(n *network) error {
	packets, err := sound(n.packets)
	if err != nil {
		return err
	}
	bits, err := sound(n.stream)
	if err != nil {
		return err
	}
	p50, p99, err := pktgen.Ping(n.from, n.to, 1, 2000)
	f.packets, f.bits, f.p50, f.p99 = append(f.packets, packets), append(f.bits, bits), append(f.p50, p50), append(f.p99, p99)
	return err
}

// sound measures again what a busy machine let nothing happen in.
func sound(measure func() (float64, error)) (value float64, err error) {
	for range 5 {
		if value, err = measure(); err != nil || value > 0 && !math.IsInf(value, 0) {
			break
		}
	}
	return value, err
}

// packets are those of 60 bytes that arrive in a second of the forwarder's
// time; of one that is no process, in a second of the sender's.
func (n *network) packets() (float64, error) {
	if n.process == 0 {
		return pktgen.Arrive(n.from, n.to, 60, 1, *window)
	}
	counter, err := pktgen.CountAt(n.to, pktgen.Discard)
	if err != nil {
		return 0, err
	}
	defer counter.Close()
	sender, err := pktgen.Start(n.from, n.to, 60, 1, pktgen.Discard)
	if err != nil {
		return 0, err
	}
	time.Sleep(*window / 5)
	before, began := counter.Packets(), n.time()
	time.Sleep(*window)
	rate := float64(counter.Packets()-before) / (n.time() - began).Seconds()
	return rate, sender.Stop()
}

// signal stops a forwarder or lets it go on.
func (n *network) signal(s unix.Signal) {
	if n.process != 0 {
		_ = unix.Kill(n.process, s) // that is missing is told by what follows
	}
}

// time is what the forwarder's process has used.
func (n *network) time() time.Duration {
	const scheduled = 2 // linux/posix-timers.h
	var t unix.Timespec
	if unix.ClockGettime(int32(^n.process<<3|scheduled), &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// stream is what one TCP connection carries with both ends on processor 1 and
// the forwarder on 0: bits by time of the ends, or of the forwarder, whichever
// is less. The forwarder's follow from what both together give.
func (n *network) stream() (float64, error) {
	ends, err := pktgen.Stream(n.from, n.to, 1, 1, *window)
	if err != nil || n.process == 0 {
		return ends, err
	}
	from := n.from
	from.Processes = []int{n.process}
	both, err := pktgen.Stream(from, n.to, 1, 1, *window)
	if forwarder := 1 / (1/both - 1/ends); err == nil && forwarder > 0 {
		return math.Min(ends, forwarder), nil
	}
	return ends, err
}
