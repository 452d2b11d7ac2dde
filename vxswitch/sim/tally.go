package sim

import (
	"math"
	"time"
)

// volume is packets and their bytes.
type volume struct{ packets, bytes uint64 }

func (v *volume) add(size int32) {
	v.packets++
	v.bytes += uint64(size)
}

func (v *volume) plus(o volume) {
	v.packets += o.packets
	v.bytes += o.bytes
}

// tally is what is counted of one port or switch during one run. What arrivals
// touch comes first: a large switch has thousands, in other lines of the cache.
type tally struct {
	offered    volume
	held, peak int64 // bytes now and at most, of all packets

	delivered     volume
	delay, square float64 // sums, ns and ns^2
	area          float64 // byte ns in the buffers
	longest       time.Duration
	dropped       volume
}

// enter counts bytes into the buffers, leave out of them.
func (t *tally) enter(size int32) {
	t.held += int64(size)
	t.peak = max(t.peak, t.held)
}

func (t *tally) leave(size int32) { t.held -= int64(size) }

func (t *tally) deliver(size int32, delay time.Duration) {
	t.delivered.add(size)
	d := float64(delay)
	t.delay += d
	t.square += d * d
	t.longest = max(t.longest, delay)
	t.area += d * float64(size)
}

// plus adds what ports counted; held and peak are of one place and stay.
func (t *tally) plus(o *tally) {
	t.offered.plus(o.offered)
	t.dropped.plus(o.dropped)
	t.delivered.plus(o.delivered)
	t.delay += o.delay
	t.square += o.square
	t.area += o.area
	t.longest = max(t.longest, o.longest)
}

// figures of a tally and the histogram of its delays over a measured time.
//
// The mean occupancy is the time each byte spent inside, summed, by the
// measured time (Little's law, for a sample path).
func (t *tally) figures(h *histogram, measured time.Duration) Figures {
	var f Figures
	put := func(packets, bytes Measure, v volume) {
		f[packets], f[bytes] = float64(v.packets), float64(v.bytes)
	}
	queued := volume{t.offered.packets - t.dropped.packets - t.delivered.packets, t.offered.bytes - t.dropped.bytes - t.delivered.bytes}
	put(OfferedPackets, OfferedBytes, t.offered)
	put(DeliveredPackets, DeliveredBytes, t.delivered)
	put(DroppedPackets, DroppedBytes, t.dropped)
	put(QueuedPackets, QueuedBytes, queued)
	f[ThroughputPackets] = f[DeliveredPackets] / f[OfferedPackets] // 0/0 is NaN
	f[ThroughputBytes] = f[DeliveredBytes] / f[OfferedBytes]
	f[LossPackets] = f[DroppedPackets] / f[OfferedPackets]
	f[LossBytes] = f[DroppedBytes] / f[OfferedBytes]
	f[DeliveredRate] = f[DeliveredBytes] * 8 / measured.Seconds()
	f[OccupancyMean] = t.area / float64(measured)
	f[OccupancyMax] = float64(t.peak)
	t.delays(&f, h)
	return f
}

func (t *tally) delays(f *Figures, h *histogram) {
	if t.delivered.packets == 0 {
		for m := DelayMean; m <= DelayMax; m++ {
			f[m] = math.NaN()
		}
		return
	}
	n := float64(t.delivered.packets)
	f[DelayMean] = t.delay / n
	f[DelayStd] = math.Sqrt(max(t.square/n-f[DelayMean]*f[DelayMean], 0))
	f[DelayP50] = h.quantile(0.50)
	f[DelayP99] = h.quantile(0.99)
	f[DelayMax] = float64(t.longest)
}
