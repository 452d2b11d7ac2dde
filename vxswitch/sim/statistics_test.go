package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Quantiles of the histogram are those of the sorted times, to half a column.
func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int64{10, 1000, 1e6, 1e12}).Draw(t, "limit")
		times := rapid.SliceOfN(rapid.Int64Range(0, limit), 1, 300).Draw(t, "times")
		fine := rapid.SampledFrom([]uint{fineInput, fineOutput}).Draw(t, "fine")
		h, other := newHistogram(fine), newHistogram(fine)
		for i, v := range times {
			if i%2 == 0 {
				h.add(time.Duration(v))
			} else {
				other.add(time.Duration(v))
			}
		}
		h.merge(other)
		slices.Sort(times)
		for _, q := range []float64{0, 0.5, 0.99, 1} {
			exact := float64(times[max(int(math.Ceil(q*float64(len(times)))), 1)-1])
			if got := h.quantile(q); math.Abs(got-exact) > exact/float64(int(2)<<fine)+0.5 {
				t.Errorf("quantile %g is %g, want %g", q, got, exact)
			}
		}
	})
}

// Intervals are those of Student's distribution (NIST/SEMATECH e-Handbook,
// 1.3.6.7.2: 2.776 for four degrees of freedom at 97.5 %).
func TestInterval(t *testing.T) {
	mean, half := interval([]float64{1, 2, 3, 4, 5})
	if want := 2.7764 * math.Sqrt(2.5) / math.Sqrt(5); mean != 3 || math.Abs(half-want) > 1e-3 {
		t.Errorf("%g ± %g, want 3 ± %g", mean, half, want)
	}
	if _, half := interval([]float64{7}); !math.IsNaN(half) {
		t.Errorf("one run has the interval %g", half)
	}
	if mean, _ := interval(nil); !math.IsNaN(mean) {
		t.Errorf("nothing has the mean %g", mean)
	}
}

// 95 % intervals of independent runs hold the true mean in about 95 % of
// experiments. Of 400, fewer than 360 or more than 398 come up once in 10^5.
func TestIntervalsCover(t *testing.T) {
	held := 0
	for n := range uint64(400) {
		var runs []Figures
		for seed := range uint64(5) {
			f := Figures{}
			f[DelayMean] = 1e9 / rateOf(poisson{1000}, n*5+seed, 200)
			runs = append(runs, f)
		}
		if e := estimate(runs); math.Abs(e.Mean[DelayMean]-1000) <= e.Half[DelayMean] {
			held++
		}
	}
	if held < 360 || held > 398 {
		t.Errorf("%d of 400 intervals hold the mean", held)
	}
}
