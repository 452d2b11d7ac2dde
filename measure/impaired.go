package measure

import (
	"math"
	"time"

	"sublet/vnet"
)

// What an impairment may be off: the greater of a part of the delay and a time.
const (
	delayPart = 0.05
	delayTime = 50 * time.Microsecond
)

// Bounds of what can be measured: beyond, pings come back too late, or too few.
const (
	mostDelay  = 250 * time.Millisecond
	mostLoss   = 0.5
	deviations = 4
)

// ImpairedLatency is what impairments of both directions may add to half of a
// round trip.
func ImpairedLatency(both [2]vnet.Impairment) (half time.Duration) {
	for _, i := range both {
		if i.Delay > 0 {
			half += (i.Delay + max(time.Duration(delayPart*float64(i.Delay)), delayTime)) / 2
		}
	}
	return half
}

// LongestDelay is the longest usual one of an impairment.
func LongestDelay(i vnet.Impairment) time.Duration { return i.Delay + deviations*i.Jitter }

// Measurable says whether impairments leave something to measure.
func Measurable(both [2]vnet.Impairment) bool {
	for _, i := range both {
		if LongestDelay(i) > mostDelay || missing(i) > mostLoss {
			return false
		}
	}
	return true
}

// missing is the share of frames that an impairment keeps from arriving whole.
func missing(i vnet.Impairment) float64 {
	lost, corrupt := part(i.Loss), part(i.Corrupt)
	return lost + (1-lost)*corrupt
}

func part(s vnet.Share) float64 { return float64(s) / float64(vnet.WholeShare) }

// leastFrames is how many a load sends at least.
const leastFrames = 1000

// missingAtMost is the upper end of its binomial interval.
func missingAtMost(i vnet.Impairment) float64 {
	p := missing(i)
	return p + 5*math.Sqrt(p*(1-p)/leastFrames)
}

// forgive takes out of a verdict what was asked for, and out of the scope what
// tells nothing any more: TCP backs off for what is lost, late or out of order.
func forgive(l vnet.LinkVerdict, done Scope) (vnet.LinkVerdict, Scope) {
	if l.Impair == ([2]vnet.Impairment{}) {
		return l, done
	}
	if !Measurable(l.Impair) {
		l.LatencyBound = 0
		return l, Scope{}
	}
	most := min(missingAtMost(l.Impair[0]), 0.9)
	done.TCP = false
	udp := float64(l.UDP) / (1 + part(l.Impair[0].Duplicate))
	l.UDP = vnet.Rate(max(udp, min(udp/(1-most), float64(l.Min)))) // with what was to be lost, up to the guarantee
	l.UDPLoss = max(0, l.UDPLoss-most)
	return l, done
}
