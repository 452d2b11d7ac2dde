package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// target is where a packet of a stream may go.
type target struct {
	of     int32
	output int16
}

// stream makes the packets of one input.
type stream struct {
	random  *rand.Rand
	process process
	sizes   sizer
	targets []target
	choice  alias
	input   int16
	clock   float64 // ns; exact to far below one for days
	stop    time.Duration
}

func (s *stream) next(a *Arrival) bool {
	s.clock += s.process.gap(s.random)
	a.At = time.Duration(s.clock)
	if a.At >= s.stop {
		return false
	}
	a.Size = s.sizes.draw(s.random)
	a.Input = s.input
	// Drawn even if there is no choice, so that the number of virtual switches
	// changes nothing else.
	t := s.targets[s.choice.draw(s.random.Uint64())]
	a.Switch, a.Output = t.of, t.output
	return true
}

// replay makes the packets of a capture enter one input; a flow stays whole.
type replay struct {
	rest    []Frame
	targets []target
	choice  alias
	input   int16
	start   time.Duration
	stop    time.Duration
}

func (r *replay) next(a *Arrival) bool {
	if len(r.rest) == 0 || r.start+r.rest[0].At >= r.stop {
		return false
	}
	f := r.rest[0]
	r.rest = r.rest[1:]
	t := r.targets[r.choice.draw(f.Flow)]
	*a = Arrival{At: r.start + f.At, Switch: t.of, Input: r.input, Output: t.output, Size: f.Size}
	return true
}

// sources makes the streams of a scenario for one run. Stream n of a run draws
// from a generator of its own, seeded by the run's seed and n: streams are
// independent, and what one of them sends does not depend on the others.
func (s *Scenario) sources(seed uint64) []source {
	var list []source
	for i := range s.Traffic {
		t := &s.Traffic[i]
		if t.Trace != nil {
			list = append(list, &recorded{rest: t.Trace, stop: s.Duration})
			continue
		}
		for _, input := range t.Inputs {
			random := rand.New(rand.NewPCG(seed, uint64(len(list))))
			list = append(list, s.stream(t, input, random))
		}
	}
	return list
}

func (s *Scenario) stream(t *Traffic, input int, random *rand.Rand) source {
	stop := s.Duration
	if t.Stop > 0 {
		stop = min(stop, t.Stop)
	}
	targets, weights := s.targets(t, input)
	if len(targets) == 0 || t.Replay == nil && t.Rate == 0 {
		return &recorded{} // nothing
	}
	choice := newAlias(weights)
	if t.Replay != nil {
		return &replay{rest: t.Replay, targets: targets, choice: choice, input: int16(input), start: t.Start, stop: stop}
	}
	return &stream{
		random: random, process: t.process(), sizes: t.Sizes.sizer(),
		targets: targets, choice: choice, input: int16(input),
		clock: float64(t.Start), stop: stop,
	}
}

// targets of a stream: every virtual switch with both ports, by its weight,
// evenly over the outputs it may reach.
func (s *Scenario) targets(t *Traffic, input int) (list []target, weights []float64) {
	for of, weight := range t.Weights {
		v := &s.VirtualSwitches[of]
		outputs := v.reach(input, t.Outputs)
		for _, o := range outputs {
			if weight > 0 {
				list = append(list, target{int32(of), int16(o)})
				weights = append(weights, weight/float64(len(outputs)))
			}
		}
	}
	return list, weights
}

// reach lists the outputs a virtual switch forwards to from an input.
func (v *VirtualSwitch) reach(input int, outputs []int) []int {
	if !slices.Contains(v.Ports, input) {
		return nil
	}
	var list []int
	for _, o := range outputs {
		if slices.Contains(v.Ports, o) && !slices.Contains(v.Blocked, [2]int{input, o}) {
			list = append(list, o)
		}
	}
	return list
}

func (t *Traffic) process() process {
	perSecond := float64(t.Rate) / 8 / t.Sizes.Mean()
	switch {
	case t.Arrivals == "constant":
		return &constant{mean: 1e9 / perSecond}
	case t.Arrivals == "poisson":
		return poisson{mean: 1e9 / perSecond}
	case t.MMPP != nil:
		return t.MMPP.process()
	}
	return Bursty(perSecond, t.Peak, t.Low, t.Burst).process()
}
