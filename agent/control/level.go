package control

import "math"

// Bounds of a level.
const (
	levelWindow = 40   // samples that a mean has at most: it follows what drifts
	oddness     = 0.05 // of the mean, what another level is at least
	agreement   = 0.03 // of each other, within which two odd samples are a new level
	oddsMost    = 4    // odd samples in a row that need not agree
	shift       = 0.03 // of the mean, by which the last samples are away from it at least, to be another level
)

// level follows a quantity that is constant but for noise and steps.
type level struct {
	mean, dev float64 // dev: mean distance of samples
	n         int
	odd       float64
	odds      int
	last      [4]float64 // the last ones, in a ring
	at        int
}

// add takes a sample and says whether the level is a new one.
func (l *level) add(x float64) bool {
	if l.n == 0 {
		l.mean, l.n = x, 1
		return true
	}
	l.at++
	l.last[l.at%len(l.last)] = x
	if away := math.Abs(x - l.mean); away > max(oddness*l.mean, 5*l.dev) {
		return l.another(x)
	}
	l.odds = 0
	if l.shifted() {
		return true
	}
	l.n = min(l.n+1, levelWindow)
	l.dev += (math.Abs(x-l.mean) - l.dev) / float64(min(l.n, 20))
	l.mean += (x - l.mean) / float64(l.n)
	return false
}

// shifted begins a level where the last samples are too far from the mean to be
// noise, though none of them was odd.
func (l *level) shifted() bool {
	mean := 0.0
	for _, x := range l.last {
		mean += x / float64(len(l.last))
	}
	if l.n < 2*len(l.last) || math.Abs(mean-l.mean) <= max(shift*l.mean, 2.5*l.dev) {
		return false
	}
	l.mean, l.n = mean, len(l.last)
	return true
}

// another begins a level once two samples in a row agree on it: the first one
// is of before and after.
func (l *level) another(x float64) bool {
	l.odds++
	agree := l.odds > 1 && math.Abs(x-l.odd) <= max(agreement*l.odd, 3*l.dev*x/l.mean)
	if agree || l.odds >= oddsMost {
		next := x
		if agree {
			next = (x + l.odd) / 2
		}
		l.dev *= next / l.mean
		l.mean, l.n, l.odds = next, 2, 0
		return true
	}
	l.odd = x
	return false
}

// unsettled says whether the last sample was odd.
func (l *level) unsettled() bool { return l.odds > 0 }

// doubt is the standard error of the mean, relative; of a normal distribution
// the mean distance is 0.8 standard deviations.
func (l *level) doubt() float64 {
	if l.n == 0 || l.mean == 0 {
		return 0
	}
	return 1.25 * l.dev / l.mean / math.Sqrt(float64(l.n))
}
