// Package measure turns counts and samples into the field's figures of merit:
// percentiles, loss, Jain's fairness index, rates of Ethernet frames, and the
// judgement whether a promise was kept. It is pure: no clock, no I/O. The
// senders and receivers that collect the samples are in measure/probe.
package measure

import (
	"math"
	"slices"
)

// Percentile is the nearest-rank percentile: the smallest sample such that p
// percent (0 < p <= 100) of all are no larger. Of no samples it is 0. The
// samples keep their order.
func Percentile(samples []float64, p float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Clone(samples)
	slices.Sort(sorted)
	// Multiplied before dividing, so that whole ranks stay whole.
	rank := int(math.Ceil(p * float64(len(sorted)) / 100))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
