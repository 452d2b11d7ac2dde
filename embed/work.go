package embed

// Work is counted in arcs that searches look at and hosts that are weighed.
// workPerMillisecond of it takes at most a millisecond on a processor of 2015
// or later (docs/embedding.md has the measurement).
const workPerMillisecond = 100_000

// random is a small generator of numbers (splitmix64, Steele et al., OOPSLA
// 2014): the search wants variety, the same on every machine.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below is a number from 0 up to, but not including, n.
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// spent is the work done so far.
func (s *search) spent() int { return s.graph.Steps() + s.weighed }
