package topology

import (
	"math/bits"

	"sublet/internal/splitmix"
)

// random is part of a substrate's name: what a seed gives must not change.
type random struct{ splitmix.Source }

// below is a number from 0 to n-1; the bias is below n/2^64.
func (r *random) below(n int) int {
	high, _ := bits.Mul64(r.Next(), uint64(n))
	return int(high)
}
