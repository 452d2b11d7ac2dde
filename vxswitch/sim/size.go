package sim

import "math/rand/v2"

// Sizes is a mix of two uniform distributions of frame sizes in bytes
// (thesis 4.4.1.1). A fixed size has both ends equal.
type Sizes struct {
	Small, Large [2]int  // from, to, both included
	Part         float64 // of frames that are small, 0 to 1
}

// Bimodal is the mix of the thesis; it does not say the part of small frames,
// half is taken.
var Bimodal = Sizes{Small: [2]int{64, 100}, Large: [2]int{1350, 1500}, Part: 0.5}

// Fixed is frames of one size.
func Fixed(size int) Sizes {
	return Sizes{Small: [2]int{size, size}, Large: [2]int{size, size}, Part: 1}
}

// Mean size in bytes.
func (s Sizes) Mean() float64 {
	return s.Part*float64(s.Small[0]+s.Small[1])/2 + (1-s.Part)*float64(s.Large[0]+s.Large[1])/2
}

// Max is the largest size.
func (s Sizes) Max() int { return max(s.Small[1], s.Large[1]) }

// sizer draws sizes; one draw of 64 bits serves both choices.
type sizer struct {
	limit [2]uint64 // from, span of each mode
	span  [2]uint64
	part  uint64 // of 2^32
}

func (s Sizes) sizer() sizer {
	return sizer{
		limit: [2]uint64{uint64(s.Small[0]), uint64(s.Large[0])},
		span:  [2]uint64{uint64(s.Small[1] - s.Small[0] + 1), uint64(s.Large[1] - s.Large[0] + 1)},
		part:  uint64(s.Part * (1 << 32)),
	}
}

func (s *sizer) draw(r *rand.Rand) int32 {
	bits := r.Uint64()
	mode := 0
	if bits>>32 >= s.part {
		mode = 1
	}
	// The bias of scaling 32 bits to at most 9,000 values is below 3e-6.
	return int32(s.limit[mode] + bits&(1<<32-1)*s.span[mode]>>32)
}
