package pin

import (
	"slices"

	"sublet/agent/control/cores"
)

// decide says on which core each process is to be. What is on none is put on the
// emptiest. The rest stays unless another placement has a fullest core that is emptier
// by gain, and may is said.
func decide(weights, busy []float64, at []int, may bool) (to []int, moved bool) {
	to = join(weights, busy, at)
	if !may {
		return to, false
	}
	best, err := cores.Exact(weights, busy, cores.Steps)
	if err != nil || best.Most+gain > fullest(weights, busy, to) {
		return to, false
	}
	return best.Core, true
}

// join puts those that are on no core beside the others, the heaviest first.
func join(weights, busy []float64, at []int) []int {
	load, to := slices.Clone(busy), slices.Clone(at)
	var fresh []int
	var heavy []float64
	for i, j := range at {
		if j < 0 {
			fresh, heavy = append(fresh, i), append(heavy, weights[i])
		} else {
			load[j] += weights[i]
		}
	}
	p, err := cores.Greedy(heavy, load)
	for n, i := range fresh {
		if to[i] = 0; err == nil {
			to[i] = p.Core[n]
		}
	}
	return to
}

// fullest is the load of the fullest core.
func fullest(weights, busy []float64, at []int) float64 {
	load := slices.Clone(busy)
	for i, j := range at {
		load[j] += weights[i]
	}
	return slices.Max(load)
}
