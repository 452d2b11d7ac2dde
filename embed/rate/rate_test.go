package rate

import (
	"errors"
	"slices"
	"testing"

	"sublet/vnet"

	"pgregory.net/rapid"
)

const mega = vnet.Mbit

// TestAllocateVectors: both rows of the worked example (Anhalt, thesis, section
// 5.2.4; Vicat-Blanc Primet et al., section III.B) and the vectors derived from
// the optimisation, in Mbit/s.
func TestAllocateVectors(t *testing.T) {
	for _, c := range []struct {
		name     string
		capacity vnet.Rate
		min, max []vnet.Rate
		want     []vnet.Rate // nil: infeasible
	}{
		{"worked example, t1", 2000, rates(100, 800, 300), rates(500, 1500, 300), rates(500, 1200, 300)},
		{"worked example, t2", 2000, rates(100, 800), rates(500, 1500), rates(500, 1500)},
		{"two may both have it all", 2000, rates(0, 0), rates(2000, 2000), rates(2000, 2000)},
		{"three may not", 2000, rates(0, 0, 0), rates(2000, 2000, 2000), rates(1000, 1000, 1000)},
		{"four with minima", 1000, rates(100, 100, 100, 100), rates(1000, 1000, 1000, 1000), rates(300, 300, 300, 300)},
		{"sum of maxima above capacity", 2000, rates(100, 800), rates(500, 1900), rates(500, 1900)},
		{"one", 1000, rates(0), rates(1000), rates(1000)},
		{"one static", 1000, rates(200, 0, 0), rates(200, 1000, 1000), rates(200, 400, 400)},
		{"minima above capacity", 1000, rates(600, 500), rates(1000, 1000), nil},
		{"none", 1000, nil, nil, []vnet.Rate{}},
		{"minimum above maximum", 1000, rates(200), rates(100), nil},
		{"best effort takes no part", 1000, rates(0, 100, 0), rates(0, 1000, 0), rates(0, 1000, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Allocate(c.capacity*mega, demandsIn(mega, c.min, c.max))
			if infeasible := new(Infeasible); errors.As(err, &infeasible) != (c.want == nil) {
				t.Fatalf("Allocate: %v, %v", got, err)
			}
			for i := range c.want {
				c.want[i] *= mega
			}
			if c.want != nil && !slices.Equal(got, c.want) {
				t.Errorf("Allocate = %v, want %v", got, c.want)
			}
		})
	}
}

// TestAllocateRoundsDown: 9500/3 Mbit/s is not whole; equal demands stay equal.
func TestAllocateRoundsDown(t *testing.T) {
	got, err := Allocate(10000*mega, demandsIn(mega, rates(1000, 2000, 0, 500), rates(10000, 4000, 10000, 500)))
	if want := rates(3166666666, 3166666666, 3166666666, 500000000); err != nil || !slices.Equal(got, want) {
		t.Errorf("Allocate = %v, %v, want %v", got, err, want)
	}
}

// TestAllocateUnbounded: an unstated maximum is the capacity, and nothing
// overflows at the largest figures.
func TestAllocateUnbounded(t *testing.T) {
	demands := make([]vnet.Bandwidth, 5)
	for i := range demands {
		demands[i].Max = vnet.Unbounded
	}
	got, err := Allocate(1000, demands)
	if want := rates(250, 250, 250, 250, 250); err != nil || !slices.Equal(got, want) {
		t.Errorf("Allocate = %v, %v, want %v", got, err, want)
	}
	got, err = Allocate(vnet.Unbounded, demands)
	if want := ceiling / 4; err != nil || got[0] != want {
		t.Errorf("Allocate = %v, %v, want %v each", got, err, want)
	}
	demands[0].Min, demands[1].Min = ceiling, ceiling
	if _, err := Allocate(vnet.Unbounded, demands); err == nil {
		t.Error("minima of twice the capacity were allocated")
	}
}

// TestAllocateProperties holds for any feasible case: every constraint of the
// optimisation, in whole numbers; the same rates in any order; and max-min
// fairness: no rate can grow by taking from a larger one, except where the
// larger one stands at its least.
func TestAllocateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity, demands := drawFeasible(t, 12, 1000)
		got, err := Allocate(capacity, demands)
		if err != nil {
			t.Fatal(err)
		}
		if why := violated(capacity, demands, got); why != "" {
			t.Fatalf("%v of %v: %s", got, demands, why)
		}
		order := rapid.Permutation(indexes(len(demands))).Draw(t, "order")
		shuffled := make([]vnet.Bandwidth, len(demands))
		for i, from := range order {
			shuffled[i] = demands[from]
		}
		again, err := Allocate(capacity, shuffled)
		if err != nil {
			t.Fatal(err)
		}
		for i, from := range order {
			if again[i] != got[from] {
				t.Fatalf("rates depend on order: %v and %v", got, again)
			}
		}
	})
}

// violated names a constraint that rates break; "": none.
func violated(capacity vnet.Rate, demands []vnet.Bandwidth, got []vnet.Rate) string {
	sum := vnet.Rate(0)
	for _, r := range got {
		sum += r
	}
	for i, d := range demands {
		switch {
		case d.BestEffort() && got[i] != 0:
			return "best effort was given a rate"
		case got[i] < d.Min || got[i] > min(d.Max, capacity):
			return "a rate is out of bounds"
		case d.Min > capacity-(sum-got[i]) && !d.BestEffort():
			return "the others' rates break a guarantee"
		}
	}
	return ""
}

// drawFeasible draws a capacity and up to most demands whose minima fit, with
// figures small enough for rounding and ties to matter.
func drawFeasible(t *rapid.T, most int, scale int64) (vnet.Rate, []vnet.Bandwidth) {
	capacity := vnet.Rate(rapid.Int64Range(1, scale).Draw(t, "capacity"))
	left := capacity
	demands := make([]vnet.Bandwidth, rapid.IntRange(1, most).Draw(t, "demands"))
	for i := range demands {
		d := &demands[i]
		d.Min = vnet.Rate(rapid.Int64Range(0, int64(left)).Draw(t, "min"))
		if rapid.Bool().Draw(t, "no minimum") {
			d.Min = 0
		}
		left -= d.Min
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			d.Max = d.Min
		case 1:
			d.Max = vnet.Unbounded
		default:
			d.Max = d.Min + vnet.Rate(rapid.Int64Range(0, scale).Draw(t, "more"))
		}
	}
	return capacity, demands
}

func rates(r ...vnet.Rate) []vnet.Rate { return r }

func demandsIn(unit vnet.Rate, low, high []vnet.Rate) []vnet.Bandwidth {
	demands := make([]vnet.Bandwidth, len(low))
	for i := range demands {
		demands[i] = vnet.Bandwidth{Min: low[i] * unit, Max: high[i] * unit}
	}
	return demands
}

func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
