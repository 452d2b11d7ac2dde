package ofload

import (
	"math"
	"math/bits"
	"time"
)

// histogram counts durations in buckets that are at most 1/64 of their value
// wide, so that any number of them takes the same memory.
type histogram struct {
	buckets [64 * 64]uint64
	count   uint64
	sum     float64
	max     time.Duration
}

const steps = 6 // bits of a value that tell buckets apart

func (h *histogram) add(d time.Duration) {
	v := uint64(max(d, 0))
	h.buckets[bucketOf(v)]++
	h.count++
	h.sum += float64(v)
	h.max = max(h.max, d)
}

func bucketOf(v uint64) int {
	if v < 1<<steps {
		return int(v)
	}
	shift := bits.Len64(v) - steps - 1
	return (shift+1)<<steps + int(v>>shift)&(1<<steps-1)
}

// least is the smallest value of a bucket.
func least(bucket int) uint64 {
	if bucket < 1<<steps {
		return uint64(bucket)
	}
	shift := bucket>>steps - 1
	return (1<<steps + uint64(bucket)&(1<<steps-1)) << shift
}

// percentile is in microseconds; 0 of nothing.
func (h *histogram) percentile(p float64) float64 {
	rank := uint64(math.Ceil(p / 100 * float64(h.count)))
	seen := uint64(0)
	for b, n := range h.buckets {
		if seen += n; n > 0 && seen >= rank {
			middle := (float64(least(b)) + float64(least(b+1))) / 2
			return math.Min(middle, float64(h.max)) / 1e3
		}
	}
	return 0
}

func (h *histogram) figures() Latency {
	if h.count == 0 {
		return Latency{}
	}
	return Latency{
		P50: h.percentile(50), P90: h.percentile(90), P99: h.percentile(99), P999: h.percentile(99.9),
		Max: float64(h.max) / 1e3, Mean: h.sum / float64(h.count) / 1e3,
	}
}
