package rate

import (
	"cmp"
	"slices"

	"sublet/vnet"
)

// bound is the interval a rate must lie in.
type bound struct{ low, high vnet.Rate }

func (b bound) lower() vnet.Rate { return b.low }
func (b bound) upper() vnet.Rate { return b.high }

// sumOf adds one side of all bounds, stopping at limit: sums of maxima could
// overflow otherwise.
func sumOf(bounds []bound, side func(bound) vnet.Rate, limit vnet.Rate) vnet.Rate {
	sum := vnet.Rate(0)
	for _, b := range bounds {
		if side(b) >= limit-sum {
			return limit
		}
		sum += side(b)
	}
	return sum
}

// shore is a level at which one more bound (or one less) rises with the water.
type shore struct {
	level vnet.Rate
	join  int // +1 at a lower bound, -1 at an upper one
}

// waterLevel is the highest whole level for which the clamped rates sum to at
// most total. The lower bounds sum to at most total.
func waterLevel(bounds []bound, total vnet.Rate) vnet.Rate {
	shores := make([]shore, 0, 2*len(bounds))
	left := total
	for _, b := range bounds {
		shores = append(shores, shore{b.low, 1}, shore{b.high, -1})
		left -= b.low
	}
	slices.SortFunc(shores, func(a, b shore) int { return cmp.Compare(a.level, b.level) })
	level, rising := vnet.Rate(0), vnet.Rate(0)
	for _, s := range shores {
		// Division, not multiplication: rising * step may overflow.
		if rising > 0 && left/rising < s.level-level {
			return level + left/rising
		}
		left -= rising * (s.level - level)
		level = s.level
		rising += vnet.Rate(s.join)
	}
	return level
}
