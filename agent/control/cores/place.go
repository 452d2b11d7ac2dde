package cores

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// Steps that Exact takes at most unless told otherwise: some 30 ms of a core.
const Steps = 250_000

// Placement of functions on cores.
type Placement struct {
	Core   []int     // of each function
	Load   []float64 // of each core, with what it had
	Most   float64   // the greatest load
	Proved bool      // none has a lower one
}

// check refuses what is no weight.
func check(weights, busy []float64) error {
	if len(busy) == 0 {
		return errors.New("there are no cores to place functions on")
	}
	for _, w := range append(slices.Clone(weights), busy...) {
		if !(w >= 0) || math.IsInf(w, 1) {
			return errors.New("a weight or a load is not a number from 0 on")
		}
	}
	return nil
}

// descending is the order of functions by weight.
func descending(weights []float64) []int {
	order := make([]int, len(weights))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	return order
}

// Greedy puts the heaviest function that is left on the least loaded core. busy
// is what cores carry already.
func Greedy(weights, busy []float64) (Placement, error) {
	if err := check(weights, busy); err != nil {
		return Placement{}, err
	}
	p := Placement{Core: make([]int, len(weights)), Load: slices.Clone(busy)}
	for _, i := range descending(weights) {
		least := 0
		for j, load := range p.Load {
			if load < p.Load[least] {
				least = j
			}
		}
		p.Core[i] = least
		p.Load[least] += weights[i]
	}
	p.Most = slices.Max(p.Load)
	p.Proved = same(p.Most, bound(weights, busy))
	return p, nil
}

// same says whether two loads differ by rounding only.
func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, a, b) }

// bound is a load that the fullest core has in every placement: the mean, that of
// the heaviest function on the emptiest core, and of two that must share one.
func bound(weights, busy []float64) float64 {
	low, whole := slices.Min(busy), 0.0
	for _, x := range append(slices.Clone(weights), busy...) {
		whole += x
	}
	least := max(whole/float64(len(busy)), slices.Max(busy))
	order, m := descending(weights), len(busy)
	if len(order) > 0 {
		least = max(least, low+weights[order[0]])
	}
	if len(order) > m {
		least = max(least, low+weights[order[m-1]]+weights[order[m]])
	}
	return least
}

// search is a branch and bound in progress.
type search struct {
	weights []float64 // descending
	load    []float64
	core    []int
	best    []int
	most    float64 // of the best
	least   float64 // no placement is below
	steps   int     // left
}

// Exact is the best placement, or the best that was found in so many steps;
// Proved says which.
func Exact(weights, busy []float64, steps int) (Placement, error) {
	p, err := Greedy(weights, busy)
	if err != nil || p.Proved {
		return p, err
	}
	order := descending(weights)
	s := search{load: slices.Clone(busy), core: make([]int, len(order)), most: p.Most, least: bound(weights, busy), steps: steps}
	for _, i := range order {
		s.weights = append(s.weights, weights[i])
	}
	s.place(0, slices.Max(busy))
	p.Proved = s.steps > 0 || same(s.most, s.least)
	if s.best == nil {
		return p, nil
	}
	p.Load = slices.Clone(busy)
	for n, i := range order {
		p.Core[i] = s.best[n]
		p.Load[s.best[n]] += weights[i]
	}
	p.Most = s.most
	return p, nil
}

// place puts the n-th function on each core that could make a better placement,
// the least loaded first; of cores with one load, on the first.
func (s *search) place(n int, most float64) {
	if n == len(s.weights) {
		s.most, s.best = most, slices.Clone(s.core)
		return
	}
	for _, j := range s.byLoad() {
		if s.steps--; s.steps <= 0 || same(s.most, s.least) {
			return
		}
		load := s.load[j] + s.weights[n]
		if load >= s.most || same(load, s.most) {
			return // the others are fuller
		}
		s.core[n] = j
		before := s.load[j]
		s.load[j] = load
		s.place(n+1, max(most, load))
		s.load[j] = before
	}
}

// byLoad lists cores of different loads, the least loaded first.
func (s *search) byLoad() []int {
	order := make([]int, len(s.load))
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.load[a], s.load[b]) })
	return slices.CompactFunc(order, func(a, b int) bool { return s.load[a] == s.load[b] })
}
