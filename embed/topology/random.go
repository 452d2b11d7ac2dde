package topology

import "math/bits"

// random is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): what a seed gives is
// part of a substrate's name, so it must not change with a library.
type random struct{ state uint64 }

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below is a number from 0 to n-1; the bias is below n/2^64.
func (r *random) below(n int) int {
	high, _ := bits.Mul64(r.next(), uint64(n))
	return int(high)
}

// float is a number from 0 to 1, exclusive.
func (r *random) float() float64 { return float64(r.next()>>11) / (1 << 53) }
