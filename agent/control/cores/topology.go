package cores

import (
	"fmt"
	"slices"
	"strings"
)

// Topology is a line of switches with functions at them, and how often a packet
// of a chain passes each.
type Topology struct {
	At       []int // the switch of each function, in the chain's order
	Switches int
	Passes   []float64 // of the switches, then of the functions
}

// String names the switch of each function, counted from 1.
func (t Topology) String() string {
	var list []string
	for i, at := range t.At {
		list = append(list, fmt.Sprintf("F%d at S%d", i+1, at+1))
	}
	return strings.Join(list, ", ")
}

// line counts passes: the packet enters at the first switch, goes to the switch
// of each function, through it and back, and leaves by the last one.
func line(switches int, at []int) Topology {
	t := Topology{At: slices.Clone(at), Switches: switches, Passes: make([]float64, switches+len(at))}
	here := 0
	t.Passes[0]++
	visit := func(to int) {
		for here != to {
			if here < to {
				here++
			} else {
				here--
			}
			t.Passes[here]++
		}
	}
	for i, to := range at {
		visit(to)
		t.Passes[switches+i]++
		t.Passes[here]++
	}
	visit(switches - 1)
	return t
}

// maxTopologies bounds how many are looked at.
const maxTopologies = 10_000

// Representative are the topologies of a chain of functions along a line of
// switches with at most so many at each, one of those that load switches and
// functions alike.
func Representative(switches, functions, most int) []Topology {
	var list []Topology
	seen := map[string]bool{}
	at, used := make([]int, functions), make([]int, switches)
	looked := 0
	var choose func(i int)
	choose = func(i int) {
		if looked >= maxTopologies {
			return
		}
		if i == functions {
			looked++
			t := line(switches, at)
			loads := slices.Clone(t.Passes[:switches])
			slices.Sort(loads)
			if key := fmt.Sprint(loads); !seen[key] {
				seen[key] = true
				list = append(list, t)
			}
			return
		}
		for s := range switches {
			if used[s] < most {
				at[i] = s
				used[s]++
				choose(i + 1)
				used[s]--
			}
		}
	}
	choose(0)
	return list
}

// Choice is a topology with the placement of its nodes.
type Choice struct {
	Topology  Topology
	Placement Placement
	Rate      float64 // packets a second that the fullest core carries
}

// Best is the pair of topology and placement that carries most, with the costs of
// a pass of a switch and of each function in seconds of a core. Cores carry busy
// already. Of equals the first is taken.
func Best(topologies []Topology, perSwitch float64, perFunction, busy []float64, steps int) (Choice, error) {
	var best Choice
	for _, t := range topologies {
		weights := t.Weights(perSwitch, perFunction)
		idle := make([]float64, len(busy))
		p, err := Exact(weights, idle, steps)
		if err != nil {
			return best, err
		}
		if rate := carries(p, weights, busy); rate > best.Rate {
			best = Choice{t, p, rate}
		}
	}
	if best.Rate == 0 {
		return best, fmt.Errorf("none of %d topologies carries anything", len(topologies))
	}
	return best, nil
}

// Weights are seconds of a core for each packet of the chain, of every node.
func (t Topology) Weights(perSwitch float64, perFunction []float64) []float64 {
	weights := make([]float64, len(t.Passes))
	for i, n := range t.Passes {
		weights[i] = n * perSwitch
		if i >= t.Switches {
			weights[i] = n * perFunction[i-t.Switches]
		}
	}
	return weights
}

// carries is the rate at which the first core is full, the fullest placement on
// the core that has most left.
func carries(p Placement, weights, busy []float64) float64 {
	load := slices.Clone(p.Load)
	left := make([]float64, len(busy))
	for j, b := range busy {
		left[j] = 1 - b
	}
	slices.Sort(load)
	slices.Sort(left)
	rate := 0.0
	for j := range load {
		if load[j] > 0 && (rate == 0 || left[j]/load[j] < rate) {
			rate = left[j] / load[j]
		}
	}
	return max(rate, 0)
}
