package sim

import (
	"time"
)

// Outcome is the figures of one run.
type Outcome struct {
	Seed     uint64
	Events   uint64 // arrivals, departures: what the switches had to do
	Total    Figures
	Switches []SwitchOutcome
	Split    *SplitOutcome
}

// SwitchOutcome is the figures of one virtual switch and its ports by number.
type SwitchOutcome struct {
	Figures
	Inputs, Outputs map[int]Figures
}

// SplitOutcome is the figures of a split link from end to end, and those of
// the buffers at its far end.
type SplitOutcome struct {
	Figures
	Paths           []Figures
	Reordered, Late uint64
	Stalls, Lost    uint64
}

// measured is the time in which packets count.
func (s *Scenario) measured() time.Duration { return s.Duration - s.Warmup }

func (r *run) outcome(seed uint64) *Outcome {
	o := &Outcome{Seed: seed, Events: r.events, Switches: make([]SwitchOutcome, len(r.s.VirtualSwitches))}
	all := newHistogram(fineOutput)
	for i := range o.Switches {
		delays := newHistogram(fineOutput)
		o.Switches[i] = r.count.virtual(i, delays, r.s.measured())
		r.count.total.plus(&r.count.switches[i])
		all.merge(delays)
	}
	o.Total = r.count.total.figures(all, r.s.measured())
	if r.far != nil {
		o.Split = r.far.outcome(r.s.measured())
	}
	return o
}

// virtual sums up one virtual switch.
func (c *counts) virtual(i int, delays *histogram, measured time.Duration) SwitchOutcome {
	o := SwitchOutcome{Inputs: make(map[int]Figures), Outputs: make(map[int]Figures)}
	for p := range c.ports {
		at := i*c.ports + p
		if in := &c.inputs[at]; in.offered.packets > 0 {
			o.Inputs[p+1] = in.figures(measured)
		}
		out := &c.outputs[at]
		if out.offered.packets == 0 {
			continue
		}
		o.Outputs[p+1] = out.figures(measured)
		c.switches[i].plus(&out.tally)
		if out.delays.counts != nil {
			delays.merge(&out.delays)
		}
	}
	o.Figures = c.switches[i].figures(delays, measured)
	return o
}

func (s *side) figures(measured time.Duration) Figures { return s.tally.figures(&s.delays, measured) }

func (f *far) outcome(measured time.Duration) *SplitOutcome {
	o := &SplitOutcome{Reordered: f.reorders, Late: f.order.Late, Stalls: f.order.Stalls, Lost: f.order.Lost}
	for i := range f.paths {
		o.Paths = append(o.Paths, f.paths[i].figures(measured))
		f.whole.peak = max(f.whole.peak, f.paths[i].peak)
	}
	f.whole.tally.dropped = f.dropped()
	o.Figures = f.whole.figures(measured)
	return o
}

// dropped on the way: by the first switch, and at the second.
func (f *far) dropped() volume {
	v := f.r.count.inputs[f.of.Of*f.r.count.ports+f.of.Input-1].dropped
	for i := range f.paths {
		v.plus(f.paths[i].tally.dropped)
	}
	return v
}
