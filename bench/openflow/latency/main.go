// Command latency gauges how long a frame is on its way through OpenFlow switches
// by who decides about it: a cache, the switch's process, a controller. One frame
// is on its way at a time; all switches are up at once and measured in turn.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"sublet/bench/harness"
	"sublet/bench/openflow/bed"
	"sublet/measure/pktgen"
	"sublet/openflow/of13"
)

var (
	rounds  = flag.Int("rounds", 3, "rounds, interleaved")
	frames  = flag.Int("frames", 400, "of a measurement")
	size    = flag.Int("size", 64, "of a frame, bytes")
	rate    = flag.Int("rate", 20_000, "new flows in a second")
	seconds = flag.Int("seconds", 3, "of new flows")
	only    = flag.String("only", "", "tiers or new")
)

func main() { harness.Main("openflow/latency", run) }

// Open vSwitch with AF_XDP ports is not among them: its thread polls, and takes the
// processor from the others while they are measured.
var kinds = []bed.Kind{bed.Kernel, bed.Process, bed.OVS}

func run(ctx context.Context, exe string) error {
	b, err := bed.New(exe)
	if err != nil {
		return err
	}
	defer b.Close()
	var switches []*bed.Switch
	for _, kind := range kinds {
		s, err := b.Add(ctx, kind)
		if err != nil {
			fmt.Fprintf(os.Stderr, "left out: %v\n", err)
			continue
		}
		switches = append(switches, s)
	}
	fmt.Println(harness.Machine())
	if *only != "new" {
		if err := latencies(ctx, switches); err != nil {
			return err
		}
	}
	if *only != "tiers" {
		return newFlows(ctx, switches)
	}
	return nil
}

// delays are the times of frames on their way, in microseconds.
type delays struct{ p50, p99 harness.Samples }

func (w *delays) add(times []float64) {
	slices.Sort(times)
	w.p50 = append(w.p50, times[len(times)/2])
	w.p99 = append(w.p99, times[len(times)*99/100])
}

func latencies(ctx context.Context, switches []*bed.Switch) error {
	fmt.Printf("\n%d rounds of %d frames of %d bytes, us\n\n", *rounds, *frames, *size)
	t := harness.Table{Head: []string{"switch", "tier", "median", "99th percentile"}}
	all := make(map[string]*delays)
	for range *rounds {
		for _, tier := range tiers {
			if tier.after > 0 {
				time.Sleep(tier.after)
			}
			for _, s := range switches {
				times, err := tier.measure(ctx, s)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", s.Name, tier.name, err)
				}
				key := s.Name + tier.name
				if all[key] == nil {
					all[key] = &delays{}
				}
				all[key].add(times)
			}
		}
	}
	for _, tier := range tiers {
		for _, s := range switches {
			w := all[s.Name+tier.name]
			t.Add(s.Name, tier.name, w.p50.Format("%.0f"), w.p99.Format("%.0f"))
		}
	}
	t.Print(os.Stdout)
	return nil
}

// tier is who decides about a frame.
type tier struct {
	name    string
	after   time.Duration // the tier before
	measure func(context.Context, *bed.Switch) ([]float64, error)
}

var tiers = []tier{
	{"cached", 0, cached}, {"first of a flow, from the process", 0, missed},
	{"12 s idle", 12 * time.Second, again}, {"controller on this machine", 0, controlled},
}

// across joins the first two ports.
func across() []of13.Message {
	return []of13.Message{
		bed.Entry(1, []of13.Field{of13.Exact(of13.InPort, 1)}, of13.Output(2)),
		bed.Entry(1, []of13.Field{of13.Exact(of13.InPort, 2)}, of13.Output(1)),
	}
}

// each has an entry of its own for each of some flows, so that none is known
// before its first frame.
func each(number int) []of13.Message {
	list := across()
	for i := range number {
		to := pktgen.Flow(i).As4()
		list = append(list, bed.Entry(3, []of13.Field{of13.Exact(of13.EthType, 0x0800), of13.ExactU128(of13.IPv4Dst, of13.ReadU128(to[:]))}, of13.Output(2)))
	}
	return list
}

// times sends a frame of each of some flows, and times a frame each.
func times(s *bed.Switch, flow func(i int) int) (list []float64, err error) {
	line, err := pktgen.OpenLine(s.Stations[0], s.Stations[1], *size)
	if err != nil {
		return nil, err
	}
	defer line.Close()
	return list, pktgen.OnProcessor(1, func() error {
		for i := range *frames {
			took, err := line.Travel(flow(i))
			if err != nil {
				return fmt.Errorf("frame %d: %w", i, err)
			}
			list = append(list, float64(took)/float64(time.Microsecond))
			time.Sleep(200 * time.Microsecond)
		}
		return nil
	})
}

func cached(ctx context.Context, s *bed.Switch) ([]float64, error) {
	if err := s.Replace(ctx, across()); err != nil {
		return nil, err
	}
	if _, err := times(s, func(int) int { return 0 }); err != nil {
		return nil, err
	}
	return times(s, func(int) int { return 0 })
}

func missed(ctx context.Context, s *bed.Switch) ([]float64, error) {
	if err := s.Replace(ctx, each(*frames)); err != nil {
		return nil, err
	}
	return times(s, func(i int) int { return i })
}

// again comes behind missed, with the same flows.
func again(_ context.Context, s *bed.Switch) ([]float64, error) {
	return times(s, func(i int) int { return i })
}
