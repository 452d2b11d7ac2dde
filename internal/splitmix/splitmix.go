// Package splitmix is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), for rooms
// whose results must not change with a library: the same seed gives the same
// substrate, embedding or departure on every machine and with every version.
package splitmix

// Source is a generator; its value is the seed, and then the state.
type Source uint64

// Next is the next number, of 64 bits.
func (s *Source) Next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Float is the next number from 0 to 1, exclusive.
func (s *Source) Float() float64 { return float64(s.Next()>>11) / (1 << 53) }
