// Command control gauges what OpenFlow switches do for their controller: changes
// of entries with a barrier each and in batches, statistics, and both at once.
// All are up at once and measured in turn.
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
	entries = flag.Int("entries", 10_000, "that statistics are of")
	only    = flag.String("only", "", "cases whose names match a regular expression")
)

const (
	known  = 50_000 // flows that caches have
	single = 1000   // flow-mods with a barrier each
	batch  = 1000   // flow-mods with one barrier
)

func main() { harness.Main("openflow/control", run) }

func run(ctx context.Context, exe string) error {
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	b, err := bed.New(exe)
	if err != nil {
		return err
	}
	defer b.Close()
	var switches []*bed.Switch
	for _, kind := range []bed.Kind{bed.Kernel, bed.Process, bed.OVS} {
		s, err := b.Add(ctx, kind)
		if err != nil {
			fmt.Fprintf(os.Stderr, "left out: %v\n", err)
			continue
		}
		switches = append(switches, s)
	}
	fmt.Printf("%s; %d rounds\n\n", harness.Machine(), *rounds)
	clock, processor := make(table), make(table)
	for range *rounds {
		for _, c := range cases {
			if !pattern.MatchString(c.name) {
				continue
			}
			for _, s := range switches {
				rate, err := c.measure(ctx, s)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", s.Name, c.name, err)
				}
				clock[c.name+s.Name] = append(clock[c.name+s.Name], rate.clock)
				processor[c.name+s.Name] = append(processor[c.name+s.Name], rate.processor)
			}
		}
	}
	clock.print("in a second", switches)
	fmt.Println()
	processor.print("in a second of the switch's processor time", switches)
	return nil
}

// table has the rates of a case and a switch by both names.
type table map[string]harness.Samples

func (rates table) print(what string, switches []*bed.Switch) {
	t := harness.Table{Head: []string{what}}
	for _, s := range switches {
		t.Head = append(t.Head, s.Name)
	}
	t.Head = append(t.Head, "kernel datapath: of Open vSwitch's", "process datapath: of Open vSwitch's")
	for _, c := range cases {
		if len(rates[c.name+switches[0].Name]) == 0 {
			continue
		}
		row := []any{c.name}
		for _, s := range switches {
			row = append(row, rates[c.name+s.Name].Format("%.0f"))
		}
		for _, kind := range []bed.Kind{bed.Kernel, bed.Process} {
			if base := rates[c.name+string(bed.OVS)]; len(base) > 0 {
				row = append(row, rates[c.name+string(kind)].Over(base).Format("%.1f"))
			}
		}
		t.Add(row...)
	}
	t.Print(os.Stdout)
}

var cases = []struct {
	name    string
	measure func(context.Context, *bed.Switch) (rate, error)
}{
	{"flow-mods, a barrier behind each", singles},
	{"flow-mods, a barrier behind 1,000", batches},
	{"statistics of 10,000 entries", statistics},
	{"flow-mods with a barrier each, beside polling of 10,000 entries", beside},
	{"flow-mods, a barrier behind each, beside 50,000 flows in caches", crowded},
}

// entry is one of many.
func entry(i int) *of13.FlowMod {
	to := pktgen.Flow(i).As4()
	return bed.Entry(3, []of13.Field{of13.Exact(of13.EthType, 0x0800), of13.ExactU128(of13.IPv4Dst, of13.ReadU128(to[:]))}, of13.Output(2))
}

func list(number int) (all []of13.Message) {
	for i := range number {
		all = append(all, entry(i))
	}
	return all
}

// rate is how many were done in a second: by the clock, which on a busy machine
// counts also who waited for a processor, and of the switch's processor time.
type rate struct{ clock, processor float64 }

// timed does something a number of times, by one call.
func timed(s *bed.Switch, number int, do func() error) (rate, error) {
	began, used := time.Now(), s.Time()
	err := do()
	return rate{float64(number) / time.Since(began).Seconds(), float64(number) / (s.Time() - used).Seconds()}, err
}

// singles inserts entries one by one.
func singles(ctx context.Context, s *bed.Switch) (rate, error) {
	if err := s.Replace(ctx, nil); err != nil {
		return rate{}, err
	}
	return insert(s, 0, single)
}

func insert(s *bed.Switch, from, number int) (rate, error) {
	var ready [][]byte
	for i := range number {
		b, err := s.Ready(entry(from + i))
		if err != nil {
			return rate{}, err
		}
		ready = append(ready, b)
	}
	return send(s, ready, number)
}

func send(s *bed.Switch, ready [][]byte, number int) (rate, error) {
	return timed(s, number, func() error {
		for _, b := range ready {
			if err := s.DoReady(b); err != nil {
				return err
			}
		}
		return nil
	})
}

// crowded inserts entries while flows of others are cached.
func crowded(ctx context.Context, s *bed.Switch) (rate, error) {
	err := s.Replace(ctx, []of13.Message{
		bed.Entry(1, []of13.Field{of13.Exact(of13.InPort, 1)}, of13.Output(2)),
		bed.Entry(1, []of13.Field{of13.Exact(of13.InPort, 2)}, of13.Output(1)),
	})
	if err != nil {
		return rate{}, err
	}
	line, err := pktgen.OpenLine(s.Stations[0], s.Stations[1], 64)
	if err != nil {
		return rate{}, err
	}
	defer line.Close()
	for all := range slices.Chunk(list(known), batch) {
		if err := s.Do(all...); err != nil {
			return rate{}, err
		}
	}
	for i := range known {
		if err := line.Send(line.Frame(i, 9)); err != nil {
			return rate{}, err
		}
		if i%100 == 0 { // so that none is lost on its way to the process
			time.Sleep(4 * time.Millisecond)
		}
	}
	return insert(s, known, single)
}

// batches fills the table.
func batches(ctx context.Context, s *bed.Switch) (rate, error) {
	if err := s.Replace(ctx, nil); err != nil {
		return rate{}, err
	}
	var ready [][]byte
	for all := range slices.Chunk(list(*entries), batch) {
		b, err := s.Ready(all...)
		if err != nil {
			return rate{}, err
		}
		ready = append(ready, b)
	}
	done, err := send(s, ready, *entries)
	if err != nil {
		return rate{}, err
	}
	n, err := s.Count()
	if err == nil && n != *entries {
		err = fmt.Errorf("it has %d entries", n)
	}
	return done, err
}

// statistics comes behind batches.
func statistics(ctx context.Context, s *bed.Switch) (rate, error) {
	const times = 5
	if err := s.Renew(ctx); err != nil {
		return rate{}, err
	}
	return timed(s, times, func() error {
		for range times {
			n, err := s.Entries()
			if err != nil {
				return err
			}
			if n != *entries {
				return fmt.Errorf("statistics of %d entries", n)
			}
		}
		return nil
	})
}

// beside inserts further entries while another controller asks for those without
// a pause.
func beside(ctx context.Context, s *bed.Switch) (rate, error) {
	if err := s.Renew(ctx); err != nil {
		return rate{}, err
	}
	poller, err := s.Dial(ctx)
	if err != nil {
		return rate{}, err
	}
	defer poller.Close()
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := poller.Entries(); err != nil {
				done <- err
				return
			}
		}
	}()
	inserted, err := insert(s, *entries, single/4)
	close(stop)
	if e := <-done; err == nil {
		err = e
	}
	return inserted, err
}
