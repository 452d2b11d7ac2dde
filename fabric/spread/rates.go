package spread

import "math"

// load is a flow in the model: what it wants, and its directed links.
type load struct {
	rate   float64
	weight float64 // of its share at a bottleneck, for streams
	route  []int
}

// lossy is what arrives of constant-rate flows when every overloaded link
// drops the same part of everything that reaches it: rates behind a link are
// those before it times min(1, capacity/load). Loads and rates are each
// other's cause where routes cross in a circle, so they are iterated.
func lossy(flows []load, capacity []float64) []float64 {
	factor := make([]float64, len(capacity))
	for i := range factor {
		factor[i] = 1
	}
	arrived := make([]float64, len(flows))
	for range 200 {
		sum := make([]float64, len(capacity))
		for i, f := range flows {
			rate := f.rate
			for _, l := range f.route {
				sum[l] += rate
				rate *= factor[l]
			}
			arrived[i] = rate
		}
		change := 0.0
		for l := range factor {
			next := 1.0
			if sum[l] > capacity[l] {
				next = capacity[l] / sum[l]
			}
			change = max(change, math.Abs(next-factor[l]))
			factor[l] = next
		}
		if change < 1e-9 {
			break
		}
	}
	return arrived
}

// fair is the weighted max-min fair allocation: all rates grow together, in
// proportion to their weights, until a link is full, whose flows then stay.
func fair(flows []load, capacity []float64) []float64 {
	rates, fixed := make([]float64, len(flows)), make([]bool, len(flows))
	left, weight := append([]float64(nil), capacity...), make([]float64, len(capacity))
	crossing := make([][]int, len(capacity))
	for i, f := range flows {
		for _, l := range f.route {
			weight[l] += f.weight
			crossing[l] = append(crossing[l], i)
		}
	}
	for remaining := len(flows); remaining > 0; {
		bottleneck, level := -1, math.Inf(1)
		for l := range left {
			if weight[l] > 1e-12 && left[l]/weight[l] < level {
				bottleneck, level = l, max(left[l], 0)/weight[l]
			}
		}
		if bottleneck < 0 {
			break
		}
		for _, i := range crossing[bottleneck] {
			if fixed[i] {
				continue
			}
			fixed[i], rates[i] = true, level*flows[i].weight
			remaining--
			for _, l := range flows[i].route {
				left[l] -= rates[i]
				weight[l] -= flows[i].weight
			}
		}
	}
	return rates
}
