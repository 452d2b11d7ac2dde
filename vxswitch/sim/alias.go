package sim

// alias draws from a finite distribution in constant time, by Walker's alias
// method as Vose builds it (IEEE Trans. Software Eng. 17(9), 1991).
type alias struct {
	stay  []uint32 // of 2^32: probability of keeping the column
	other []uint32
}

func newAlias(weights []float64) alias {
	n := len(weights)
	var sum float64
	for _, w := range weights {
		sum += w
	}
	scaled := make([]float64, n)
	var small, large []int
	for i, w := range weights {
		scaled[i] = w * float64(n) / sum
		if scaled[i] < 1 {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	a := alias{stay: make([]uint32, n), other: make([]uint32, n)}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a.set(s, scaled[s], l)
		if scaled[l] -= 1 - scaled[s]; scaled[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, rest := range append(small, large...) { // by rounding only
		a.set(rest, 1, rest)
	}
	return a
}

func (a *alias) set(i int, stay float64, other int) {
	a.stay[i], a.other[i] = uint32(min(stay*(1<<32), 1<<32-1)), uint32(other)
}

// draw turns 64 even bits into a choice.
func (a *alias) draw(bits uint64) int {
	column := int(bits >> 32 * uint64(len(a.stay)) >> 32)
	if uint32(bits) > a.stay[column] {
		return int(a.other[column])
	}
	return column
}
