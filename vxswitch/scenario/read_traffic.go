package scenario

import (
	"cmp"
	"fmt"
	"time"

	"sublet/vnet"
	"sublet/vxswitch/sim"
)

func (f *form) streams(s *sim.Scenario, open Open) error {
	for i := range f.Traffic {
		t, err := f.stream(&f.Traffic[i], s, open)
		if err != nil {
			return within(err, "traffic[%d]", i)
		}
		s.Traffic = append(s.Traffic, t)
	}
	return nil
}

func (f *form) stream(t *traffic, s *sim.Scenario, open Open) (sim.Traffic, error) {
	made := sim.Traffic{
		Inputs: t.Inputs, Outputs: t.Outputs, Start: time.Duration(t.Start), Stop: time.Duration(t.Stop),
		Arrivals: cmp.Or(t.Arrivals, "poisson"),
	}
	if len(made.Inputs) == 0 {
		made.Inputs = everyPort(s)
	}
	if len(made.Outputs) == 0 {
		made.Outputs = everyPort(s)
	}
	var err error
	if made.Weights, err = f.weights(t, s); err != nil {
		return made, err
	}
	if err := cmp.Or(ports("inputs", made.Inputs, s), ports("outputs", made.Outputs, s)); err != nil {
		return made, err
	}
	switch {
	case t.Trace != "" && t.Pcap != "":
		return made, fail("pcap", "stands beside trace: keep one of them")
	case t.Trace != "":
		made.Trace, err = readTrace(t.Trace, s, open)
		return made, err
	case t.Pcap != "":
		made.Replay, err = readPcap(t.Pcap, open)
		return made, err
	}
	return made, t.generated(&made, s)
}

// weights by index of the virtual switch.
func (f *form) weights(t *traffic, s *sim.Scenario) ([]float64, error) {
	weights := make([]float64, 0, len(s.VirtualSwitches))
	found := 0
	for i := range f.VirtualSwitches {
		v := &f.VirtualSwitches[i]
		w, stated := t.VirtualSwitches[v.Name]
		if stated {
			found++
		}
		if t.VirtualSwitches == nil {
			w = 1
		}
		for range v.names() {
			weights = append(weights, float64(w))
		}
	}
	if found < len(t.VirtualSwitches) {
		return nil, fail("virtual_switches", "names one that is not there: use the names of virtual_switches, of a group without number")
	}
	return weights, nil
}

// generated reads a stream that is made by a process.
func (t *traffic) generated(made *sim.Traffic, s *sim.Scenario) error {
	var err error
	if made.Sizes, err = t.sizes(); err != nil {
		return err
	}
	if err := oneOf("arrivals", made.Arrivals, []string{"mmpp", "poisson", "constant"}); err != nil {
		return err
	}
	if len(t.ArrivalRates) > 0 || len(t.TransitionRates) > 0 {
		return t.lambdas(made)
	}
	switch {
	case t.Rate != nil && t.Load != nil:
		return fail("rate", "stands beside load: keep one of them")
	case t.Rate != nil:
		err = t.mean(made, float64(*t.Rate))
	case t.Load != nil:
		err = t.mean(made, float64(s.Switch.Rate)*float64(*t.Load))
	default:
		err = fail("", "states no load: add load: 0.9 or rate: 900Mbit")
	}
	return cmp.Or(err, t.bursts(made))
}

// mean sets the bits a second; of none nothing comes.
func (t *traffic) mean(made *sim.Traffic, rate float64) error {
	if rate > 0 && rate < 1 || rate > float64(vnet.MaxRate) {
		return fail("", "has a rate of %.3g bit/s: choose 0, or 1 bit/s to %v", rate, vnet.MaxRate)
	}
	made.Rate = vnet.Rate(rate)
	return nil
}

func (t *traffic) bursts(made *sim.Traffic) error {
	made.Peak, made.Low, made.Burst = cmp.Or(float64(t.Peak), 2), 0.2, cmp.Or(float64(t.Burst), 10)
	if t.Low != nil {
		made.Low = float64(*t.Low)
	}
	if made.Arrivals != "mmpp" {
		return nil
	}
	if made.Peak <= 1 || made.Low >= 1 {
		return fail("", "has peak %v and low %v: the mean, 1, must lie between", made.Peak, made.Low)
	}
	return nil
}

// lambdas reads the process as the thesis names it.
func (t *traffic) lambdas(made *sim.Traffic) error {
	switch {
	case made.Arrivals != "mmpp" || t.Load != nil || t.Rate != nil:
		return fail("arrival_rates", "say all of an mmpp: leave load and rate out and write arrivals: mmpp")
	case len(t.ArrivalRates) != 2 || len(t.TransitionRates) != 2:
		return fail("arrival_rates", "and transition_rates are pairs: give both")
	}
	m := &sim.MMPP{}
	for i := range 2 {
		m.Arrival[i], m.Transition[i] = float64(t.ArrivalRates[i]), float64(t.TransitionRates[i])
		if m.Transition[i] <= 0 {
			return fail("transition_rates", "must be above 0")
		}
	}
	if m.Mean() <= 0 {
		return fail("arrival_rates", "are both 0: nothing would arrive")
	}
	made.MMPP = m
	return t.mean(made, m.Mean()*made.Sizes.Mean()*8)
}

func (t *traffic) sizes() (sim.Sizes, error) {
	made := sim.Bimodal
	switch {
	case t.Size != nil && t.Sizes != nil:
		return made, fail("size", "stands beside sizes: keep one of them")
	case t.Size != nil:
		made = sim.Fixed(int(*t.Size))
	case t.Sizes != nil:
		made = sim.Sizes{Small: t.Sizes.Small, Large: t.Sizes.Large, Part: 0.5}
		if t.Sizes.Part != nil {
			made.Part = float64(*t.Sizes.Part)
		}
	}
	for _, mode := range [][2]int{made.Small, made.Large} {
		if mode[0] < 1 || mode[1] < mode[0] || mode[1] > maxSize {
			return made, fail("sizes", "go from %d to %d: choose 1 to %d, ascending", mode[0], mode[1], maxSize)
		}
	}
	if made.Part > 1 {
		return made, fail("sizes.part", "is %v: choose 0 to 1", made.Part)
	}
	return made, nil
}

func readTrace(name string, s *sim.Scenario, open Open) ([]sim.Arrival, error) {
	f, err := open(name)
	if err != nil {
		return nil, fail("trace", "%v", err)
	}
	defer f.Close()
	list, err := sim.ReadTrace(f, s)
	if err != nil {
		return nil, fail("trace", "%s: %v", name, err)
	}
	return list, nil
}

func readPcap(name string, open Open) ([]sim.Frame, error) {
	f, err := open(name)
	if err != nil {
		return nil, fail("pcap", "%v", err)
	}
	defer f.Close()
	list, err := sim.ReadPcap(f)
	if err != nil {
		return nil, fail("pcap", "%s: %v", name, err)
	}
	return list, nil
}

func (f *form) splitting(s *sim.Scenario) error {
	if f.Split == nil {
		return nil
	}
	made := &sim.Split{Of: -1, Input: f.Split.Input, Rate: cmp.Or(vnet.Rate(f.Split.Rate), s.Switch.Rate), Stall: 100 * time.Millisecond}
	for i, v := range s.VirtualSwitches {
		if v.Name == f.Split.VirtualSwitch {
			made.Of = i
		}
	}
	if made.Of < 0 {
		return fail("split.virtual_switch", "%q is not there: name one of virtual_switches", f.Split.VirtualSwitch)
	}
	if f.Split.Stall != nil {
		made.Stall = time.Duration(*f.Split.Stall)
	}
	var outputs []int
	for i := range f.Split.Paths {
		p := &f.Split.Paths[i]
		outputs = append(outputs, p.Output)
		if p.Weight < 0 || p.Weight > 65536 {
			return fail(fmt.Sprintf("split.paths[%d].weight", i), "is %d: choose 1 to 65536", p.Weight)
		}
		made.Paths = append(made.Paths, sim.Path{Output: p.Output, Weight: cmp.Or(p.Weight, 1), Delay: time.Duration(p.Delay), Buffer: vnet.Bytes(p.Buffer)})
	}
	s.Split = made
	own := s.VirtualSwitches[made.Of].Ports
	if err := cmp.Or(ports("split.input", []int{made.Input}, s), ports("split.paths", outputs, s)); err != nil {
		return err
	}
	for _, p := range append(outputs, made.Input) {
		if !contains(own, p) {
			return fail("split", "uses port %d, which %q does not have", p, f.Split.VirtualSwitch)
		}
	}
	return nil
}

func contains(list []int, p int) bool {
	for _, x := range list {
		if x == p {
			return true
		}
	}
	return false
}
