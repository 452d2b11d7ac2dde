// Package rate allocates the capacity of one substrate link, in one
// direction, among the virtual links on it (Anhalt, thesis, section 5.2.4;
// Vicat-Blanc Primet et al., section III.B):
//
//	maximise   sum R[i]
//	subject to m[i] <= C - sum of R[j], j != i   (a guarantee survives all others at their caps)
//	           m[i] <= R[i] <= M[i]
//	           sum m[i] <= C
//
// The optimum is not unique; the max-min fair one is taken, which is that of
// the worked example (Anhalt, thesis, section 5.2.4) and does not depend on the order of the
// demands. There is a closed form, so no solver runs: O(N log N).
//
// The sum of the rates may exceed C: they are caps, not reservations.
//
// Compared with a linear programming solver by
//
//	go run ./tools/lpcheck -n 20000 | python3 tools/lpcheck/check.py
package rate

import (
	"fmt"
	"slices"

	"sublet/vnet"
)

// ceiling bounds capacities so that no sum below overflows: 2^61 bit/s.
const ceiling vnet.Rate = 1 << 61

// Infeasible says that no allocation keeps the demands' minima.
type Infeasible struct {
	Element  Element   // zero from Allocate, which knows none
	Capacity vnet.Rate // of the element
	Minima   vnet.Rate // sum asked for, or the minimum of the one demand at fault
	Maximum  vnet.Rate // below Minima in the one demand at fault; else 0
}

func (e *Infeasible) Error() string {
	where := ""
	if e.Element != (Element{}) {
		where = " on " + e.Element.String()
	}
	if e.Maximum != 0 || e.Minima < 0 {
		return fmt.Sprintf("allocate rates%s: minimum %s and maximum %s contradict each other", where, e.Minima, e.Maximum)
	}
	return fmt.Sprintf("allocate rates%s: minima of %s exceed the capacity of %s", where, e.Minima, e.Capacity)
}

// Allocate returns the rate of each demand on an element of a capacity, in
// bit/s, rounded down to whole bit/s (all demands at the common level lose
// the same fraction). Best-effort demands get 0 and take no part. A maximum
// above the capacity (vnet.Unbounded) counts as the capacity. The error is
// *Infeasible.
func Allocate(capacity vnet.Rate, demands []vnet.Bandwidth) ([]vnet.Rate, error) {
	capacity = min(capacity, ceiling)
	rates := make([]vnet.Rate, len(demands))
	var bounds []bound
	var index []int
	for i, d := range demands {
		if d == (vnet.Bandwidth{}) {
			continue
		}
		if d.Min < 0 || d.Max < d.Min {
			return nil, &Infeasible{Capacity: capacity, Minima: d.Min, Maximum: d.Max}
		}
		bounds = append(bounds, bound{d.Min, min(d.Max, capacity)})
		index = append(index, i)
	}
	if sum := sumOf(bounds, bound.lower, vnet.Unbounded); sum > capacity {
		return nil, &Infeasible{Capacity: capacity, Minima: sum}
	}
	for i, r := range allocate(capacity, bounds) {
		rates[index[i]] = r
	}
	return rates, nil
}

// allocate solves for demands whose minima fit and whose maxima are at most
// the capacity.
func allocate(capacity vnet.Rate, demands []bound) []vnet.Rate {
	total, excess := optimum(capacity, demands)
	raised := slices.Clone(demands)
	for i := range raised {
		raised[i].low += excess
	}
	level := waterLevel(raised, total)
	rates := make([]vnet.Rate, len(raised))
	for i, b := range raised {
		rates[i] = min(max(level, b.low), b.high)
	}
	return rates
}

// optimum is the largest sum of rates, and by how much it exceeds the
// capacity. With an excess x every rate is at least m[i] + x, because the
// others leave m[i] of C; hence x is bounded by each M[i] - m[i] and by
// (C - sum m) / (N - 1).
func optimum(capacity vnet.Rate, demands []bound) (total, excess vnet.Rate) {
	most := vnet.Rate(0)
	if n := vnet.Rate(len(demands)); n > 1 {
		most = (capacity - sumOf(demands, bound.lower, capacity)) / (n - 1)
		for _, d := range demands {
			most = min(most, d.high-d.low)
		}
	}
	total = sumOf(demands, bound.upper, capacity+most)
	return total, max(0, total-capacity)
}
