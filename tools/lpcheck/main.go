// Lpcheck prints random cases of rate allocation with the answers of
// embed/rate, one JSON object a line, for check.py to compare with a linear
// programming solver:
//
//	go run ./tools/lpcheck -n 20000 | python3 tools/lpcheck/check.py
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"log"
	"math/rand/v2"
	"os"

	"sublet/embed/rate"
	"sublet/vnet"
)

// answer is one line. Unbounded maxima are printed as the capacity.
type answer struct {
	Capacity vnet.Rate        `json:"capacity"`
	Demands  []vnet.Bandwidth `json:"demands"`
	Rates    []vnet.Rate      `json:"rates"` // null: infeasible
}

func main() {
	n := flag.Int("n", 20000, "how many cases")
	seed := flag.Uint64("seed", 1, "of the random cases")
	flag.Parse()
	random := rand.New(rand.NewPCG(*seed, 0))
	out := bufio.NewWriter(os.Stdout)
	lines := json.NewEncoder(out)
	for range *n {
		if err := lines.Encode(solve(random)); err != nil {
			log.Fatalf("print a case: %v", err)
		}
	}
	if err := out.Flush(); err != nil {
		log.Fatalf("print the last cases: %v", err)
	}
}

// solve draws a case and allocates it.
func solve(random *rand.Rand) answer {
	a := draw(random)
	rates, err := rate.Allocate(a.Capacity, a.Demands)
	if err == nil {
		a.Rates = rates
	}
	for i := range a.Demands {
		a.Demands[i].Max = min(a.Demands[i].Max, a.Capacity)
	}
	return a
}

// draw makes up to 12 demands, a few of best effort, static or without
// maximum. In one case of eight the minima are too large, in another they
// leave nothing.
func draw(random *rand.Rand) answer {
	a := answer{Capacity: vnet.Rate(1+random.Int64N(100_000)) * vnet.Mbit}
	left := a.Capacity
	for range 1 + random.IntN(12) {
		var d vnet.Bandwidth
		if random.IntN(3) > 0 {
			d.Min = vnet.Rate(random.Int64N(int64(left)+1)) / vnet.Rate(1+random.IntN(4))
		}
		left -= d.Min
		switch random.IntN(5) {
		case 0:
			d.Max = d.Min
		case 1:
			d.Max = vnet.Unbounded
		default:
			d.Max = d.Min + vnet.Rate(random.Int64N(int64(a.Capacity)))
		}
		a.Demands = append(a.Demands, d)
	}
	first := &a.Demands[0]
	switch random.IntN(8) {
	case 0:
		first.Min += left + 1
		first.Max = max(first.Min, first.Max)
	case 1:
		first.Min += left
		first.Max = max(first.Min, first.Max)
	}
	return a
}
