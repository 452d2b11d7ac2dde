package rate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sublet/vnet"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
	"pgregory.net/rapid"
)

// TestAgainstEveryAllocation: on tiny cases, no allocation in whole bit/s that
// keeps the constraints sums to more, by more than what rounding down takes;
// and of those with the optimal sum ours is max-min fair: sorted, none is
// larger at the first difference.
func TestAgainstEveryAllocation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity, demands := drawFeasible(t, 3, 12)
		got, err := Allocate(capacity, demands)
		if err != nil {
			t.Fatal(err)
		}
		best := bestOf(capacity, demands)
		if sumRates(best) == sumRates(got) {
			if a, b := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(best)); slices.Compare(a, b) < 0 {
				t.Fatalf("%v of %v is fairer than %v", best, demands, got)
			}
		}
		if sumRates(best)-sumRates(got) >= vnet.Rate(len(demands)) {
			t.Fatalf("%v of %v sums to more than %v", best, demands, got)
		}
	})
}

// bestOf tries every allocation: the largest sum, then max-min fair.
func bestOf(capacity vnet.Rate, demands []vnet.Bandwidth) []vnet.Rate {
	var best []vnet.Rate
	now := make([]vnet.Rate, len(demands))
	var try func(i int)
	try = func(i int) {
		if i < len(demands) {
			for now[i] = demands[i].Min; now[i] <= min(demands[i].Max, capacity); now[i]++ {
				try(i + 1)
			}
			return
		}
		if violated(capacity, demands, now) == "" && (best == nil || better(now, best)) {
			best = slices.Clone(now)
		}
	}
	try(0)
	return best
}

func better(a, b []vnet.Rate) bool {
	if x, y := sumRates(a), sumRates(b); x != y {
		return x > y
	}
	return slices.Compare(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))) > 0
}

func sumRates(list []vnet.Rate) vnet.Rate {
	sum := vnet.Rate(0)
	for _, r := range list {
		sum += r
	}
	return sum
}

// TestAgainstSimplex: the objective equals that of a linear programming
// solver. tools/lpcheck does the same with another solver on many more cases.
func TestAgainstSimplex(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for i := range 400 {
		capacity, demands := randomCase(random, 6)
		got, err := Allocate(capacity, demands)
		if err != nil {
			t.Fatal(err)
		}
		want, err := simplex(capacity, demands)
		if err != nil {
			t.Fatalf("case %d, %v of %v: simplex: %v", i, demands, capacity, err)
		}
		if diff := want - float64(sumRates(got)); math.Abs(diff) > float64(len(demands))+1e-9*want {
			t.Fatalf("case %d, %v of %v: the sum is %d, simplex says %f", i, demands, capacity, sumRates(got), want)
		}
	}
}

// simplex solves the optimisation of the package comment in standard form:
// with y[i] = R[i] - m[i] >= 0 and slacks u, w >= 0,
//
//	y[i] + u[i] = M[i] - m[i]                  (maxima)
//	sum of y[j], j != i, + w[i] = C - sum m    (guarantees)
//
// in units of the capacity.
func simplex(capacity vnet.Rate, demands []vnet.Bandwidth) (float64, error) {
	n := len(demands)
	unit, minima := float64(capacity), 0.0
	for _, d := range demands {
		minima += float64(d.Min)
	}
	cost, a, b := make([]float64, 3*n), mat.NewDense(2*n, 3*n, nil), make([]float64, 2*n)
	for i, d := range demands {
		cost[i] = -1
		a.Set(i, i, 1)
		a.Set(i, n+i, 1)
		b[i] = float64(min(d.Max, capacity)-d.Min) / unit
		for j := range demands {
			if j != i {
				a.Set(n+i, j, 1)
			}
		}
		a.Set(n+i, 2*n+i, 1)
		b[n+i] = (unit - minima) / unit
	}
	best, _, err := lp.Simplex(cost, a, b, 1e-12, slack(n))
	if err != nil {
		return 0, fmt.Errorf("%d demands: %w", n, err)
	}
	return minima - best*unit, nil
}

// slack is the starting basis: all slacks.
func slack(n int) []int {
	basis := make([]int, 2*n)
	for i := range basis {
		basis[i] = n + i
	}
	return basis
}

// randomCase draws a feasible case: a capacity of 1 to 100 Gbit/s and up to most
// demands of which some are static, some without minimum or maximum.
func randomCase(random *rand.Rand, most int) (vnet.Rate, []vnet.Bandwidth) {
	capacity := vnet.Rate(1+random.Int64N(100)) * vnet.Gbit
	left := capacity
	demands := make([]vnet.Bandwidth, 1+random.IntN(most))
	for i := range demands {
		d := &demands[i]
		if random.IntN(3) > 0 {
			d.Min = vnet.Rate(random.Int64N(int64(left)+1)) / vnet.Rate(1+random.IntN(4))
		}
		left -= d.Min
		d.Max = d.Min + vnet.Rate(random.Int64N(int64(capacity)))
		switch random.IntN(4) {
		case 0:
			d.Max = max(d.Min, 1)
		case 1:
			d.Max = vnet.Unbounded
		}
	}
	return capacity, demands
}
