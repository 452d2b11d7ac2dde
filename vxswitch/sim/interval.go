package sim

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// estimate makes means and 95 % confidence intervals of the figures of
// independent runs: mean +- t * s/sqrt(n), t the 97.5th percentile of
// Student's distribution with n-1 degrees of freedom. A measure that is not
// defined in some run counts the runs in which it is.
func estimate(runs []Figures) Estimate {
	e := Estimate{Half: new(Figures)}
	for m := range measures {
		e.Mean[m], e.Half[m] = interval(values(runs, m))
	}
	if len(runs) < 2 {
		e.Half = nil
	}
	return e
}

func values(runs []Figures, m Measure) []float64 {
	var list []float64
	for _, f := range runs {
		if !math.IsNaN(f[m]) {
			list = append(list, f[m])
		}
	}
	return list
}

func interval(values []float64) (mean, half float64) {
	switch n := float64(len(values)); n {
	case 0:
		return math.NaN(), math.NaN()
	case 1:
		return values[0], math.NaN()
	default:
		mean, std := stat.MeanStdDev(values, nil)
		t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975)
		return mean, t * std / math.Sqrt(n)
	}
}
