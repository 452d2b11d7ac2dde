// Package impair decides what becomes of the frames on one direction of an
// impaired link, and holds them until they are due. Time and seed are
// arguments: the same seed gives the same fates.
//
//	frame --Line.Decide--> 0, 1 or 2 copies --Queue.Put--> ... --Queue.Take--> when due
package impair

import (
	"math"
	"time"

	"sublet/internal/splitmix"
	"sublet/vnet"
)

// Line is one direction of an impaired link.
type Line struct {
	impairment vnet.Impairment
	random     splitmix.Source
	copies     [2]Copy
}

// Copy is one arrival of a frame.
type Copy struct {
	Delay time.Duration // since it was sent
	Flip  int           // the bit that is flipped; -1: none
}

// New returns a line.
func New(i vnet.Impairment, seed uint64) *Line {
	return &Line{impairment: i, random: splitmix.Source(seed)}
}

// Set changes the impairment for the frames that are decided from now on.
func (l *Line) Set(i vnet.Impairment) { l.impairment = i }

// Decide lists the arrivals of a frame of so many bytes: none if it is lost,
// two if it is duplicated. The list is valid until the next call.
func (l *Line) Decide(bytes int) []Copy {
	if l.happens(l.impairment.Loss) {
		return nil
	}
	copies := l.copies[:1]
	if l.happens(l.impairment.Duplicate) {
		copies = l.copies[:2]
	}
	for i := range copies {
		copies[i] = Copy{Delay: l.delay(), Flip: -1}
		if bytes > 0 && l.happens(l.impairment.Corrupt) {
			copies[i].Flip = int(l.random.Next() % uint64(8*bytes))
		}
	}
	return copies
}

// happens says whether a share of frames has this one.
func (l *Line) happens(s vnet.Share) bool {
	return s > 0 && l.random.Float() < float64(s)/float64(vnet.WholeShare)
}

// delay is that of one copy, never negative.
func (l *Line) delay() time.Duration {
	i := &l.impairment
	if l.happens(i.Reorder) {
		return 0
	}
	if i.Jitter == 0 {
		return i.Delay
	}
	return max(0, i.Delay+time.Duration(float64(i.Jitter)*l.deviation(i.Distribution)))
}

// deviation is a delay's distance from its mean, in units of the jitter.
func (l *Line) deviation(d vnet.Distribution) float64 {
	switch d {
	case vnet.Normal:
		return l.normal()
	case vnet.Pareto:
		return l.pareto()
	case vnet.ParetoNormal:
		return (paretoWeight*l.pareto() + (1-paretoWeight)*l.normal()) / mixedDeviation
	}
	return 2*l.random.Float() - 1
}

// Weight of the Pareto distribution in ParetoNormal, as in iproute2's
// netem/paretonormal.c, and the standard deviation of the weighted sum.
const (
	paretoWeight   = 0.75
	mixedDeviation = 0.7905694150420949 // sqrt(weight^2 + (1-weight)^2)
	mostDeviations = 4                  // of the normal distribution, as in netem's table
)

// normal is of the standard normal distribution (Box and Muller, A note on the
// generation of random normal deviates, 1958), without its ends.
func (l *Line) normal() float64 {
	for {
		r := math.Sqrt(-2 * math.Log(1-l.random.Float()))
		if z := r * math.Cos(2*math.Pi*l.random.Float()); math.Abs(z) <= mostDeviations {
			return z
		}
	}
}

// Shape of the Pareto distribution and where it is cut off, as in iproute2's
// netem/pareto.c: four deviations of the whole distribution above its mean.
// Mean and deviation are those of what is left, with c for paretoMost:
// 3/2 (1-c^-2)/(1-c^-3), and 3 (1-c^-1)/(1-c^-3) for the mean of squares.
const (
	paretoShape     = 3
	paretoMost      = 4.964101615137754 // 3/2 + 4 sqrt(3)/2
	paretoMean      = 1.4509906528251408
	paretoDeviation = 0.5568057759481503
)

// pareto is of mean 0 and standard deviation 1.
func (l *Line) pareto() float64 {
	for {
		if x := math.Pow(1-l.random.Float(), -1.0/paretoShape); x <= paretoMost {
			return (x - paretoMean) / paretoDeviation
		}
	}
}
