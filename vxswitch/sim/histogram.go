package sim

import (
	"math/bits"
	"time"
)

// Each power of two is cut into 2^fine columns, so a quantile read from the
// middle of its column is off by at most 1/(2*2^fine) of itself: 0.8 %. Finer
// ones of a large switch would not fit into a processor's cache.
const fine = 6

// columns cover times up to 2^41 ns, 36 minutes; longer ones count as that.
const columns = (41 - fine + 1) << fine

// histogram counts times in bounded memory, as HdrHistogram does.
type histogram struct {
	counts [columns]uint32
	total  uint64
}

func column(t time.Duration) int {
	v := uint64(max(t, 0))
	shift := max(bits.Len64(v)-fine-1, 0)
	return min(shift<<fine+int(v>>shift), columns-1)
}

// middle of a column.
func middle(c int) float64 {
	if c < 2<<fine {
		return float64(c)
	}
	shift := c>>fine - 1
	return (float64(c&(1<<fine-1)|1<<fine) + 0.5) * float64(uint64(1)<<shift)
}

func (h *histogram) add(t time.Duration) {
	h.counts[column(t)]++
	h.total++
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
}

// quantile q (0 to 1) by the nearest-rank definition: the smallest time that
// at least q of all are not above.
func (h *histogram) quantile(q float64) float64 {
	rank := max(uint64(q*float64(h.total)+0.999999999), 1)
	var seen uint64
	for c, n := range h.counts {
		if seen += uint64(n); seen >= rank {
			return middle(c)
		}
	}
	return 0
}
