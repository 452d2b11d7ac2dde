package vxswitch

import (
	"math/bits"

	"sublet/vnet"
)

// line counts the time bits take at a rate without losing fractions: what one
// frame's duration cuts off below a nanosecond is added to the next one's.
type line struct {
	rate uint64 // bit/s
	rem  uint64 // bit·ns not yet counted, below rate
}

// take returns how long size bytes take.
func (l *line) take(size int) Time {
	hi, lo := bits.Mul64(uint64(size)*8, 1e9)
	lo, carry := bits.Add64(lo, l.rem, 0)
	q, r := bits.Div64(hi+carry, lo, l.rate)
	l.rem = r
	return Time(q)
}

// bucket is a token bucket in the form of a generic cell rate algorithm (ITU-T
// I.371): a frame may pass at t if t >= tat - slack, and then moves tat by its
// time at the rate. In any interval T at most rate·T + burst + one frame pass.
type bucket struct {
	line
	tat   Time
	slack Time // burst at rate
}

func newBucket(rate vnet.Rate, burst vnet.Bytes) bucket {
	b := bucket{line: line{rate: uint64(rate)}}
	b.slack = (&line{rate: uint64(rate)}).take(int(burst))
	return b
}

// reset changes rate and burst and keeps what was used.
func (b *bucket) reset(rate vnet.Rate, burst vnet.Bytes) {
	tat := b.tat
	*b = newBucket(rate, burst)
	b.tat = tat
}

// next is the earliest time a frame may pass.
func (b *bucket) next() Time { return b.tat - b.slack }

// pass counts a frame that passes at now.
func (b *bucket) pass(now Time, size int) {
	if b.tat < now {
		b.tat, b.rem = now, 0
	}
	b.tat += b.take(size)
}
