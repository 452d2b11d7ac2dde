package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"sublet/bench/harness"
	"sublet/bench/openflow/bed"
	"sublet/report"
)

// point is what a frame costs a switch with some ports, of which some have frames.
type point struct {
	ports, busy                       int
	polling, io, rules, actions, rest float64 // ns of a frame
}

func (p point) processing() float64 { return p.io + p.rules + p.actions }
func (p point) whole() float64      { return p.processing() + p.polling + p.rest }

// polling measures where the time of the process goes with 2 to 8 ports, 1 to all of
// which get frames, and fits the thesis's model to it:
//
//	T = t_p + (n t_poll + t_o) / pppr
//
// for a frame, with pppr frames of a turn of the loop.
func polling(ctx context.Context, exe string) error {
	var points []point
	t := harness.Table{Head: []string{"ports", "with frames", "polling", "i/o", "rules", "actions", "overhead", "ns a frame", "efficiency r", "r of the model"}}
	for _, ports := range []int{2, 4, 6, 8} {
		err := with(ctx, exe, ports, []bed.Kind{bed.Process}, func(list []*bed.Switch) error {
			for _, s := range list {
				for busy := 1; busy <= ports; busy = next(busy, ports) {
					p, err := stagesOf(ctx, s, ports, busy)
					if err != nil {
						return err
					}
					points = append(points, p)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	m := fit(points)
	for _, p := range points {
		t.Add(p.ports, p.busy, p.polling, p.io, p.rules, p.actions, p.rest, p.whole(), p.processing()/p.whole(), m.efficiency(p))
	}
	t.Print(os.Stdout)
	fmt.Printf("Fit: t_p %.0f ns, t_poll %.1f ns a port, t_o %.0f ns; R^2 of polling and overhead %.3f\n\n", m.processing, m.poll, m.rest, m.r2)
	return nil
}

// next is 1, 2, 4, 6, 8 up to all.
func next(busy, ports int) int {
	if busy == 1 {
		return min(2, ports)
	}
	return busy + 2
}

// windows of each round are short: in most of them the process is not interrupted, and
// the median is of those.
const windows = 10

func stagesOf(ctx context.Context, s *bed.Switch, ports, busy int) (p point, err error) {
	if err := s.Replace(ctx, pairs(ports)); err != nil {
		return p, err
	}
	var stages [5]harness.Samples
	for range *rounds {
		_, err := send(s, busy, 1, func() error {
			for range windows {
				before, err := s.Stages()
				if err != nil {
					return err
				}
				time.Sleep(*window / 5)
				after, err := s.Stages()
				if err != nil {
					return err
				}
				note(&stages, before, after)
			}
			return ctx.Err()
		})
		if err != nil {
			return p, err
		}
	}
	return point{ports: ports, busy: busy, polling: stages[0].Median(), io: stages[1].Median(), rules: stages[2].Median(), actions: stages[3].Median(), rest: stages[4].Median()}, nil
}

// note adds what a frame took in a window.
func note(stages *[5]harness.Samples, before, after report.StageTimes) {
	frames := float64(after.Frames - before.Frames)
	if frames == 0 {
		return
	}
	for i, d := range []time.Duration{
		after.Polling - before.Polling, after.IO - before.IO, after.Rules - before.Rules, after.Actions - before.Actions, after.Overhead - before.Overhead,
	} {
		stages[i] = append(stages[i], float64(d)/frames)
	}
}

// model is the time of a frame by ports and packets of a turn.
type model struct{ processing, poll, rest, r2 float64 }

// framesOfTurn is what the switch takes of a port before the next one's turn.
const framesOfTurn = 32

// pppr is how many packets a turn takes where ports always have some.
func (p point) pppr() float64 { return float64(p.busy * framesOfTurn) }

func (m model) efficiency(p point) float64 {
	work := p.pppr() * m.processing
	return work / (float64(p.ports)*m.poll + work + m.rest)
}

// fit finds it: what a packet takes by the median, and what a turn takes beside by
// least squares over polling + overhead = t_poll n/pppr + t_o 1/pppr.
func fit(points []point) (m model) {
	var processing, beside harness.Samples
	var xx, xy, yy, xz, yz float64 // normal equations
	for _, p := range points {
		x, y, z := float64(p.ports)/p.pppr(), 1/p.pppr(), p.polling+p.rest
		xx, xy, yy, xz, yz = xx+x*x, xy+x*y, yy+y*y, xz+x*z, yz+y*z
		processing, beside = append(processing, p.processing()), append(beside, z)
	}
	d := xx*yy - xy*xy
	m.processing, m.poll, m.rest = processing.Median(), (xz*yy-yz*xy)/d, (yz*xx-xz*xy)/d
	var wrong, all, mean float64
	for _, z := range beside {
		mean += z / float64(len(beside))
	}
	for i, p := range points {
		guess := (float64(p.ports)*m.poll + m.rest) / p.pppr()
		wrong += (beside[i] - guess) * (beside[i] - guess)
		all += (beside[i] - mean) * (beside[i] - mean)
	}
	m.r2 = 1 - wrong/all
	return m
}
