// Command control compares laws that hold the rates of service chains by shares
// of processors, in the model of agent/control/sim: no machine is measured, and
// the figures are the same everywhere.
package main

import (
	"flag"
	"fmt"
	"os"

	"sublet/agent/control"
	"sublet/agent/control/sim"
	"sublet/bench/harness"
)

func main() {
	seeds := flag.Int("seeds", 30, "runs of each scenario with other noise")
	flag.Parse()
	planes()
	fmt.Println()
	experiments()
	fmt.Println()
	scenarios(*seeds)
}

// experiments are those of the thesis, with each law.
func experiments() {
	t := harness.Table{Head: []string{"experiment", "law", "error %", "reaction s", "reallocations", "in all"}}
	for _, e := range sim.Experiments() {
		for _, law := range []struct {
			name string
			make func() sim.Law
		}{
			{"shares that stay", func() sim.Law { return sim.Unchanged(e.Scenario) }},
			{"the published one", func() sim.Law { return sim.NewThesis(e.Scenario, e.Deadband) }},
			{"ours", func() sim.Law { return sim.Ours(e.Scenario) }},
		} {
			o, reaction, reallocations := sim.Run(e.Scenario, law.make()), "", ""
			for i := range e.Events {
				one := sim.Run(e.After(i), law.make())
				reaction += fmt.Sprintf(" %.1f", one.Reaction)
				reallocations += fmt.Sprint(" ", one.Reallocations)
			}
			t.Add(e.Name, law.name, percent(o.Error), reaction, reallocations, o.All)
		}
	}
	t.Print(os.Stdout)
}

// planes shows where the published law stops being stable.
func planes() {
	t := harness.Table{Head: []string{"Mbit/s per hundredth of a core", "reallocations when a flow joins", "when it leaves", "from 100 to 200 s after"}}
	for _, mbit := range []float64{6, 7, 8, 9, 10, 11, 15, 25, 50} {
		join, leave, late := sim.JoinAndLeave(control.NewPublished(20), mbit)
		t.Add(mbit, join, leave, late)
	}
	t.Print(os.Stdout)
}

func scenarios(seeds int) {
	t := harness.Table{Head: []string{"scenario", "error %", "reaction s", "reallocations", "overshoot %", "processor", "runs that miss a target", "published law: error %", "reallocations in all", "shares that stay: error %"}}
	var worst sim.Outcome
	var worstName string
	missed, runs := 0, 0
	for _, s := range sim.Scenarios() {
		o, law, static := sim.Run(s, sim.Ours(s)), sim.Run(s, sim.NewThesis(s, 6)), sim.Run(s, sim.Unchanged(s))
		n := 0
		for seed := range seeds {
			other := s
			other.Seed = uint64(7*seed + 1)
			all := sim.Run(other, sim.Ours(other))
			if runs++; len(all.Missed()) > 0 {
				n++
			}
			if all.Error > worst.Error {
				worstName = s.Name
			}
			worst = worst.Worse(all)
		}
		missed += n
		t.Add(s.Name, percent(o.Error), answer(s, fmt.Sprintf("%.1f", o.Reaction)), answer(s, fmt.Sprint(o.Reallocations)), answer(s, percent(o.Overshoot)),
			fmt.Sprintf("%.3f", o.Processor), fmt.Sprintf("%d of %d", n, seeds), percent(law.Error), law.All, percent(static.Error))
	}
	t.Print(os.Stdout)
	fmt.Printf("\n%d of %d runs miss a target. Worst of all: error %s %% (%s), reaction %.1f s, %d reallocations, overshoot %s %%, processor %.3f.\n",
		missed, runs, percent(worst.Error), worstName, worst.Reaction, worst.Reallocations, percent(worst.Overshoot), worst.Processor)
}

// answer leaves out what there is none of.
func answer(s sim.Scenario, text string) string {
	if len(s.Events) == 0 {
		return ""
	}
	return text
}

func percent(x float64) string { return fmt.Sprintf("%.2f", 100*x) }
