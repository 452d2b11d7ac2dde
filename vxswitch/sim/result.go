package sim

import (
	"maps"
	"slices"
)

// Result is the outcomes of the runs of one scenario, put together.
type Result struct {
	Seeds           []uint64     `json:"seeds"`
	DurationNs      int64        `json:"duration_ns"`
	WarmupNs        int64        `json:"warmup_ns"`
	Events          uint64       `json:"packet_events"`
	Total           Estimate     `json:"total"`
	VirtualSwitches []Switch     `json:"virtual_switches"`
	Split           *SplitResult `json:"split,omitempty"`
}

// SplitResult is a split link from end to end.
type SplitResult struct {
	EndToEnd  Estimate `json:"end_to_end"`
	Paths     []Port   `json:"paths"`
	Reordered uint64   `json:"reordered_packets"`
	Late      uint64   `json:"late_packets"`
	Stalls    uint64   `json:"stalls"`
	Lost      uint64   `json:"given_up_numbers"`
}

// Combine puts outcomes of the same scenario together.
func Combine(s *Scenario, runs []*Outcome) *Result {
	r := &Result{DurationNs: int64(s.Duration), WarmupNs: int64(s.Warmup)}
	for _, o := range runs {
		r.Seeds = append(r.Seeds, o.Seed)
		r.Events += o.Events
	}
	r.Total = estimate(collect(runs, func(o *Outcome) Figures { return o.Total }))
	for i := range s.VirtualSwitches {
		r.VirtualSwitches = append(r.VirtualSwitches, s.combine(i, runs))
	}
	if s.Split != nil {
		r.Split = s.combineSplit(runs)
	}
	return r
}

func collect(runs []*Outcome, get func(*Outcome) Figures) []Figures {
	var list []Figures
	for _, o := range runs {
		list = append(list, get(o))
	}
	return list
}

func (s *Scenario) combine(i int, runs []*Outcome) Switch {
	v := &s.VirtualSwitches[i]
	made := Switch{Name: v.Name, BufferBytes: int64(v.Buffer), Inputs: []Port{}, Outputs: []Port{}}
	made.Estimate = estimate(collect(runs, func(o *Outcome) Figures { return o.Switches[i].Figures }))
	inputs, outputs := v.used(i, runs)
	for _, p := range inputs {
		e := estimate(collect(runs, func(o *Outcome) Figures { return o.Switches[i].Inputs[p] }))
		made.Inputs = append(made.Inputs, Port{p, int64(v.Buffer) * int64(len(v.Ports)), e})
	}
	for _, p := range outputs {
		e := estimate(collect(runs, func(o *Outcome) Figures { return o.Switches[i].Outputs[p] }))
		made.Outputs = append(made.Outputs, Port{p, int64(v.Buffer) * int64(len(v.Ports)), e})
	}
	return made
}

// used lists the ports that packets were offered to in any run.
func (v *VirtualSwitch) used(i int, runs []*Outcome) (inputs, outputs []int) {
	in, out := make(map[int]bool), make(map[int]bool)
	for _, o := range runs {
		for p := range o.Switches[i].Inputs {
			in[p] = true
		}
		for p := range o.Switches[i].Outputs {
			out[p] = true
		}
	}
	return slices.Sorted(maps.Keys(in)), slices.Sorted(maps.Keys(out))
}

func (s *Scenario) combineSplit(runs []*Outcome) *SplitResult {
	r := &SplitResult{EndToEnd: estimate(collect(runs, func(o *Outcome) Figures { return o.Split.Figures }))}
	for i, p := range s.Split.Paths {
		e := estimate(collect(runs, func(o *Outcome) Figures { return o.Split.Paths[i] }))
		r.Paths = append(r.Paths, Port{p.Output, int64(p.Buffer), e})
	}
	for _, o := range runs {
		r.Reordered += o.Split.Reordered
		r.Late += o.Split.Late
		r.Stalls += o.Split.Stalls
		r.Lost += o.Split.Lost
	}
	return r
}
