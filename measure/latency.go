package measure

import (
	"time"

	"sublet/vnet"
)

// LatencySecond is what is known of the round trips of a link after one more second.
type LatencySecond struct {
	Bound time.Duration   // of one way
	RTTs  []time.Duration // of probes that were answered; none: nothing is known
	// Untested is why they tell nothing of the bound, if it is known.
	Untested string
	Trouble  string
	Busy     string // the same of processors of its hosts, for which probes wait
}

// LatencyProver judges the latency of one link, second by second. The zero value is
// ready.
type LatencyProver struct {
	bound time.Duration
	over  int // seconds with probes one after the other in which the bound was exceeded
	run   int // probes one after the other that exceeded it
}

// overFor is in how many seconds with probes one after the other the latency must be
// over its bound, or overProbes in how many probes, where no host is short of processors: a
// second has two or three, and one of them may wait for one.
const overFor, overProbes = 3, 4

// Add judges a second: whether half the median round trip is within the bound, which
// part of it the bound is, and why it is not, or was not tested. A second that is over
// it and may be an exception is not tested.
func (p *LatencyProver) Add(s LatencySecond) (outcome vnet.Outcome, part float64, cause string) {
	if s.Bound != p.bound || s.Untested != "" {
		*p = LatencyProver{bound: s.Bound}
	}
	if s.Bound == 0 || s.Untested != "" || len(s.RTTs) == 0 {
		return vnet.NotTested, 1, s.Untested
	}
	latency := OneWay(s.RTTs)
	part = micros(s.Bound) / max(latency, 1e-3)
	p.over = next(p.over, part < 1)
	for _, one := range oneWay(s.RTTs) {
		p.run = next(p.run, one > micros(s.Bound))
	}
	broken := p.over >= overFor || part < 1 && p.run >= overProbes && s.Busy == ""
	switch {
	case broken && s.Trouble != "":
		return vnet.Broken, part, s.Trouble + " (" + isOver + ")"
	case broken:
		return vnet.Broken, part, isOver
	case p.over > 0:
		return vnet.NotTested, 1, ""
	}
	return vnet.Kept, part, ""
}

const isOver = "half the median round trip is over the bound"

// OneWay is half the median of round trips, in us.
func OneWay(rtts []time.Duration) float64 { return Percentile(oneWay(rtts), 50) }

// oneWay is half of round trips, in us.
func oneWay(rtts []time.Duration) (list []float64) {
	for _, rtt := range rtts {
		list = append(list, micros(rtt)/2)
	}
	return list
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// ProveLatency sums runs of the latency of a link up.
func ProveLatency(bound time.Duration, runs []vnet.ProofRun) *vnet.LatencyProof {
	p := Prove(vnet.Proof{}, runs)
	l := &vnet.LatencyProof{Bound: micros(bound), Tested: p.Tested, Broken: p.Broken, Availability: p.Availability, Worst: p.Worst, Runs: p.Runs}
	for _, r := range runs {
		l.P50, l.P99 = max(l.P50, r.P50), max(l.P99, r.P99)
	}
	return l
}
