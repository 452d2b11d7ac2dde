package sim

import (
	"math/bits"
	"time"
)

// A histogram counts times in bounded memory, as HdrHistogram does: each power
// of two is cut into 2^fine columns, so a quantile read from the middle of its
// column is off by at most 1/(2*2^fine) of itself.
type histogram struct {
	counts []uint32
	fine   uint
}

// Fineness: to 0.8 % for outputs and what is summed up of them, to 1.6 % for
// inputs. A large switch has thousands of them, most of which must fit into a
// processor's cache.
const (
	fineOutput = 6
	fineInput  = 5
)

// longest is the power of two, 2^41 ns or 36 minutes, beyond which times are
// not told apart.
const longest = 41

func newHistogram(fine uint) *histogram {
	return &histogram{fine: fine, counts: make([]uint32, (longest-fine+1)<<fine)}
}

func (h *histogram) column(t time.Duration) int {
	v := uint64(max(t, 0))
	shift := max(bits.Len64(v)-int(h.fine)-1, 0)
	return min(shift<<h.fine+int(v>>shift), len(h.counts)-1)
}

// middle of a column.
func (h *histogram) middle(c int) float64 {
	if c < 2<<h.fine {
		return float64(c)
	}
	shift := c>>h.fine - 1
	return (float64(c&(1<<h.fine-1)|1<<h.fine) + 0.5) * float64(uint64(1)<<shift)
}

func (h *histogram) add(t time.Duration) {
	h.counts[h.column(t)]++
}

// merge adds what another of the same fineness counted.
func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
}

// quantile q (0 to 1) by the nearest-rank definition: the smallest time that
// at least q of all are not above.
func (h *histogram) quantile(q float64) float64 {
	var total, seen uint64
	for _, n := range h.counts {
		total += uint64(n)
	}
	rank := max(uint64(q*float64(total)+0.999999999), 1)
	for c, n := range h.counts {
		if seen += uint64(n); seen >= rank {
			return h.middle(c)
		}
	}
	return 0
}
