package sched

import (
	"math"
	"time"

	"sublet/internal/splitmix"
	"sublet/vnet"
	"sublet/vxswitch"
)

// RED is random early detection (Floyd and Jacobson, 1993): frames are refused
// with a probability that grows with the average queue, so that senders slow
// down before the buffer is full. "Gentle": between Max and twice Max the
// probability grows from P to 1 (Floyd, 2000). Zero fields take the defaults
// of Floyd's "RED: Discussions of Setting Parameters" (1997).
type RED struct {
	Min, Max vnet.Bytes // thresholds of the average; default Max three times Min, and twice Max the buffer
	P        float64    // probability at Max; default 0.1
	Weight   float64    // of the newest sample in the average; default 0.002
}

func (RED) String() string { return "red" }

// New returns a manager for a buffer of size bytes drained at rate bit/s.
func (r RED) New(size int, rate int64, seed uint64) vxswitch.Manager {
	r = r.fill(vnet.Bytes(size))
	return &red{RED: r, random: splitmix.Source(seed), typical: time.Duration(meanFrame * 8 * 1e9 / float64(max(rate, 1)))}
}

// meanFrame is the frame an idle line is supposed to have sent: RED's average
// decays by one sample for each that would have fitted the idle time.
const meanFrame = 500

func (r RED) fill(size vnet.Bytes) RED {
	if r.Max == 0 {
		r.Max = max(size/2, 1)
		if r.Min > 0 {
			r.Max = 3 * r.Min
		}
	}
	if r.Min == 0 {
		r.Min = r.Max / 3
	}
	if r.P == 0 {
		r.P = 0.1
	}
	if r.Weight == 0 {
		r.Weight = 0.002
	}
	return r
}

type red struct {
	RED
	random  splitmix.Source
	avg     float64 // bytes
	count   int     // frames taken since the last refused one
	emptied vxswitch.Time
	idle    bool
	typical time.Duration
}

func (r *red) Accept(now vxswitch.Time, q vxswitch.Occupancy, _ int) bool {
	r.sample(now, q)
	p := r.probability()
	if p <= 0 {
		r.count = -1
		return true
	}
	r.count++
	if p < 1 && r.random.Float() >= spread(p, r.count) {
		return true
	}
	r.count = 0
	return false
}

// sample takes the queue's length into the average.
func (r *red) sample(now vxswitch.Time, q vxswitch.Occupancy) {
	if q.Bytes == 0 && r.idle {
		m := float64(now.Sub(r.emptied)) / float64(max(r.typical, 1))
		r.avg *= math.Pow(1-r.Weight, m)
	}
	r.idle = false
	r.avg += r.Weight * (float64(q.Bytes) - r.avg)
}

// probability is p_b of the paper, gentle above Max.
func (r *red) probability() float64 {
	low, high := float64(r.Min), float64(r.Max)
	switch {
	case r.avg < low:
		return 0
	case r.avg < high:
		return r.P * (r.avg - low) / (high - low)
	default:
		return min(1, r.P+(1-r.P)*(r.avg-high)/high)
	}
}

// spread is p_a: the gaps between refused frames are uniform, not geometric.
func spread(p float64, count int) float64 {
	if float64(count)*p >= 1 {
		return 1
	}
	return p / (1 - float64(count)*p)
}

func (r *red) Keep(now, _ vxswitch.Time, q vxswitch.Occupancy, _ int) bool {
	if q.Packets == 1 {
		r.emptied, r.idle = now, true
	}
	return true
}
