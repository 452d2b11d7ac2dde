package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sublet/bench/harness"
	"sublet/bench/openflow/bed"
)

const portProgram = "ofswitch_port"

// cost is how long programs of ports ran, and how often.
type cost struct {
	time time.Duration
	runs uint64
}

// spent is what all of them did since they are counted.
func spent() (c cost, err error) {
	for id := ebpf.ProgramID(0); ; {
		if id, err = ebpf.ProgramGetNextID(id); errors.Is(err, os.ErrNotExist) {
			return c, nil
		} else if err != nil {
			return c, err
		}
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // it is gone
		}
		if info, err := p.Info(); err == nil && info.Name == portProgram {
			if s, err := p.Stats(); err == nil {
				c.time, c.runs = c.time+s.Runtime, c.runs+s.RunCount
			}
		}
		p.Close()
	}
}

// costs prints how long the program of the kernel datapath takes for a frame, by
// case. Reading the clock twice is in it, so differences tell more than the figures.
func costs(ctx context.Context, switches []*bed.Switch, pattern *regexp.Regexp) error {
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return fmt.Errorf("count the time of programs: %w", err)
	}
	defer stats.Close()
	t := harness.Table{Head: []string{"load", "ns of the port's program for a frame"}}
	for _, s := range switches {
		for _, c := range cases {
			if !pattern.MatchString(c.name) {
				continue
			}
			if err := s.Replace(ctx, c.entries(s)); err != nil {
				return err
			}
			if _, err := c.measure(s); err != nil { // which fills the cache
				return err
			}
			each, err := c.cost(s)
			if err != nil {
				return err
			}
			t.Add(c.name, each.Format("%.0f"))
		}
	}
	t.Print(os.Stdout)
	return nil
}

func (c load) cost(s *bed.Switch) (each harness.Samples, err error) {
	for range *rounds {
		before, err := spent()
		if err != nil {
			return nil, err
		}
		if _, err := c.measure(s); err != nil {
			return nil, err
		}
		after, err := spent()
		if err != nil {
			return nil, err
		}
		if runs := after.runs - before.runs; runs > 0 {
			each = append(each, float64(after.time-before.time)/float64(runs))
		}
	}
	return each, nil
}
