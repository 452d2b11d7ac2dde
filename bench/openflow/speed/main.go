// Command speed gauges what OpenFlow switches forward on one processor, beside
// the Linux bridge, Sublet's learning switch and Open vSwitch: the same
// stations and pairs of virtual Ethernet around all. All are up at once and are
// measured in turn, case by case, round after round, so that ratios between
// cases are of the same time, too.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"sublet/bench/harness"
	"sublet/bench/openflow/bed"
	"sublet/measure/pktgen"
	"sublet/openflow/of13"
)

var (
	rounds  = flag.Int("rounds", 5, "rounds, interleaved")
	window  = flag.Duration("window", 250*time.Millisecond, "of each measurement")
	size    = flag.Int("size", 60, "of a frame, bytes")
	profile = flag.Bool("cost", false, "say how long the kernel datapath's program takes for a frame instead")
	only    = flag.String("only", "", "cases whose names match a regular expression")
	among   = flag.String("switches", "", "switches whose names match a regular expression")
)

func main() { harness.Main("openflow/speed", run) }

var kinds = []bed.Kind{bed.Bridge, bed.Learning, bed.Kernel, bed.Process, bed.Sockets, bed.OVS, bed.AFXDP}

func run(ctx context.Context, exe string) error {
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	chosen, err := regexp.Compile(*among)
	if err != nil {
		return err
	}
	b, err := bed.New(exe)
	if err != nil {
		return err
	}
	defer b.Close()
	var switches []*bed.Switch
	if *profile {
		kinds = []bed.Kind{bed.Kernel}
	}
	for _, kind := range kinds {
		if !chosen.MatchString(string(kind)) {
			continue
		}
		s, err := b.Add(ctx, kind)
		if err != nil {
			fmt.Fprintf(os.Stderr, "left out: %v\n", err)
			continue
		}
		switches = append(switches, s)
	}
	fmt.Printf("%s; %d rounds of %s, frames of %d bytes, Mpps of one processor's time (TCP: Gbit/s)\n\n", harness.Machine(), *rounds, *window, *size)
	if *profile {
		return costs(ctx, switches, pattern)
	}
	rates := make(map[string]harness.Samples)
	failed := make(map[string]bool)
	for range *rounds {
		for _, c := range cases {
			if pattern.MatchString(c.name) {
				if err := measure(ctx, c, switches, rates, failed); err != nil {
					return err
				}
			}
		}
	}
	print(switches, rates)
	return nil
}

// measure adds to rates, by case and switch, what each switch forwards. One that cannot be
// measured is left out of the case.
func measure(ctx context.Context, c load, switches []*bed.Switch, rates map[string]harness.Samples, failed map[string]bool) error {
	for _, s := range switches {
		key := c.name + s.Name
		if failed[key] || s.Control == nil && c.program {
			continue
		}
		rate, err := c.fresh(ctx, s)
		if e := ctx.Err(); e != nil {
			return e
		}
		if err != nil {
			failed[key] = true
			fmt.Fprintf(os.Stderr, "%s: %s: %v\n", c.name, s.Name, err)
			continue
		}
		rates[key] = append(rates[key], rate)
	}
	return nil
}

// fresh measures a switch with the entries of a case and caches that were filled just before.
func (c load) fresh(ctx context.Context, s *bed.Switch) (float64, error) {
	if s.Control != nil {
		if err := s.Replace(ctx, c.entries(s)); err != nil {
			return 0, err
		}
	}
	if _, err := c.measure(s); err != nil {
		return 0, err
	}
	return c.measure(s)
}

// print gives a table of the rates and one of the ratios.
func print(switches []*bed.Switch, rates map[string]harness.Samples) {
	t := harness.Table{Head: []string{"load"}}
	for _, s := range switches {
		t.Head = append(t.Head, s.Name)
	}
	for _, c := range cases {
		row := []any{c.name}
		for _, s := range switches {
			row = append(row, rates[c.name+s.Name].Format("%.3f"))
		}
		if len(row) > slices.IndexFunc(row, func(v any) bool { return v != "-" }) {
			t.Add(row...)
		}
	}
	t.Print(os.Stdout)
	ratios(rates).Print(os.Stdout)
}

// ratios are those that are aimed at: a case and a switch over another case and
// switch, round by round.
func ratios(rates map[string]harness.Samples) harness.Table {
	t := harness.Table{Head: []string{"ratio", "at least", "measured"}}
	for _, r := range aims {
		over, base := rates[r.load+string(r.kind)], rates[r.baseLoad+string(r.base)]
		if len(over) > 0 && len(over) == len(base) {
			least := "-"
			if r.least > 0 {
				least = fmt.Sprint(r.least)
			}
			t.Add(fmt.Sprintf("%s, %s: of %s, %s", r.kind, r.load, r.base, r.baseLoad), least, over.Over(base).Format("%.2f"))
		}
	}
	return t
}

// load is one case.
type load struct {
	name    string
	flows   int
	program bool // only for switches of OpenFlow
	entries func(*bed.Switch) []of13.Message
	stream  bool // TCP
}

func (c load) measure(s *bed.Switch) (float64, error) {
	from, to := s.Stations[0], s.Stations[1]
	if c.stream {
		rate, err := pktgen.Stream(from, to, 0, 0, *window)
		return rate / 1e9, err
	}
	for _, other := range s.Stations[2:] {
		drop, err := pktgen.CountIn(other)
		if err != nil {
			return 0, err
		}
		defer drop.Close()
	}
	rate, err := pktgen.Flows(from, to, *size, c.flows, 0, *window)
	return rate / 1e6, err
}
