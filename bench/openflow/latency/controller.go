package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"sublet/bench/harness"
	"sublet/bench/openflow/bed"
	"sublet/measure/pktgen"
	"sublet/openflow/of13"
)

// controlled has a controller decide about each frame: it answers with a
// packet-out.
func controlled(ctx context.Context, s *bed.Switch) ([]float64, error) {
	toController := bed.Entry(2, []of13.Field{of13.Exact(of13.InPort, 1), of13.Exact(of13.EthType, 0x0800)}, of13.Output(of13.PortController))
	if err := s.Replace(ctx, append(across(), toController)); err != nil {
		return nil, err
	}
	s.Control.Close() // else it would be told too
	c, err := s.Dial(ctx)
	if err != nil {
		return nil, err
	}
	// Without it Open vSwitch tells a connection that it accepted of no packets.
	if err := c.Do(&of13.Config{Kind: of13.TypeSetConfig, MissSendBytes: of13.NoMaxLen}); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- c.Answer(func() of13.Action { return of13.Output(2) }) }()
	list, err := times(s, func(int) int { return 0 })
	c.Close()
	<-done // its connection is closed
	return list, err
}

// port of the established flow's datagrams.
const established = pktgen.Discard + 1

// newFlows lets flows begin at a rate beside one that goes on, and says what
// arrives of both.
func newFlows(ctx context.Context, switches []*bed.Switch) error {
	fmt.Printf("\n%d s of %d new flows in a second, one frame each, beside a flow of 5,000 frames in a second\n\n", *seconds, *rate)
	t := harness.Table{Head: []string{"switch", "new flows sent in a second", "arrived", "of the established flow", "processor time of the switch's process"}}
	for _, s := range switches {
		if err := s.Replace(ctx, each(*rate**seconds+1)); err != nil {
			return err
		}
		r, err := begin(s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		t.Add(s.Name, fmt.Sprintf("%.0f", r.sent), fmt.Sprintf("%.2f %%", 100*r.arrived), fmt.Sprintf("%.2f %%", 100*r.kept), fmt.Sprintf("%.0f %%", 100*r.busy))
	}
	t.Print(os.Stdout)
	return nil
}

type begun struct{ sent, arrived, kept, busy float64 }

func begin(s *bed.Switch) (r begun, err error) {
	from, to := s.Stations[0], s.Stations[1]
	line, err := pktgen.OpenLine(from, to, *size)
	if err != nil {
		return r, err
	}
	defer line.Close()
	fresh, err := pktgen.CountAt(to, pktgen.Discard)
	if err != nil {
		return r, err
	}
	defer fresh.Close()
	old, err := pktgen.CountAt(to, established)
	if err != nil {
		return r, err
	}
	defer old.Close()
	var count, kept int
	before, began := s.Time(), time.Now()
	err = pktgen.OnProcessor(1, func() (err error) { count, kept, err = paced(line, *rate**seconds); return err })
	took := time.Since(began)
	r.sent, r.busy = float64(count)/took.Seconds(), (s.Time()-before).Seconds()/took.Seconds()
	time.Sleep(time.Second) // what waits in the switch
	r.arrived, r.kept = float64(fresh.Packets())/float64(count), float64(old.Packets())/float64(kept)
	return r, err
}

// paced sends a frame of each flow at the rate, and four times as rarely one of
// the flow that goes on.
func paced(line *pktgen.Line, flows int) (new, kept int, err error) {
	goesOn := line.Frame(flows, established)
	for began := time.Now(); new < flows && err == nil; {
		if time.Since(began) < time.Duration(new)*time.Second/time.Duration(*rate) {
			time.Sleep(50 * time.Microsecond)
			continue
		}
		err = line.Send(line.Frame(new, pktgen.Discard))
		if new++; new%4 == 0 {
			kept++
			err = errors.Join(err, line.Send(goesOn))
		}
	}
	return new, kept, err
}
