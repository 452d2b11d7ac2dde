package lease

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"sublet/vnet"
)

// Bisection is to the bit for a small request and to a thousandth for one
// whose every try takes long.
const (
	smallRequest = 20 // links
	coarseSteps  = 10
	exactSteps   = 44 // 2^44 > vnet.MaxRate
)

// ratio scales a minimum. Its denominator is the largest minimum, so that one
// comes out at any whole bit/s.
type ratio struct{ of, whole int64 }

func (q ratio) times(r vnet.Rate) vnet.Rate {
	high, low := bits.Mul64(uint64(r), uint64(q.of))
	quotient, _ := bits.Div64(high, low, uint64(q.whole))
	return vnet.Rate(quotient)
}

// lower finds the largest scale at which the guaranteed minima of the links
// that found no path fit, or that of all links' minima if less is lost so. A
// static reservation stays static. Nothing is lowered unless the tenant takes
// the offer.
func (s *search) lower(r vnet.Request) (vnet.Request, bool) {
	some, found := s.scale(r, setOf(s.why.Links))
	all, also := s.scale(r, demanding(r))
	if also && (!found || minima(all) > minima(some)) {
		return all, true
	}
	return some, found
}

// demanding is the set of links whose bandwidth is stated anywhere.
func demanding(r vnet.Request) map[string]bool {
	all := make(map[string]bool)
	r = rewrite(r)
	eachBandwidth(&r, func(link, _ string, _ *[2]vnet.Bandwidth) { all[link] = true })
	return all
}

// scale bisects between the smallest scale that means anything and all.
func (s *search) scale(r vnet.Request, named map[string]bool) (vnet.Request, bool) {
	low, whole := scales(r, named)
	high, steps := whole, exactSteps
	if len(r.Union().Links) > smallRequest {
		steps = coarseSteps
	}
	at := func(of int64) vnet.Request { return scaled(r, named, ratio{of, whole}) }
	s.left = s.each
	if low >= high || !s.fits(at(low)) {
		return r, false
	}
	for ; steps > 0 && high-low > 1; steps-- {
		if middle := (low + high) / 2; s.fits(at(middle)) {
			low = middle
		} else {
			high = middle
		}
	}
	return at(low), true
}

// scaled lowers the minima of the named links.
func scaled(r vnet.Request, named map[string]bool, scale ratio) vnet.Request {
	r = rewrite(r)
	eachBandwidth(&r, func(link, _ string, both *[2]vnet.Bandwidth) {
		if named[link] {
			for d := range both {
				both[d] = scaledBandwidth(both[d], scale)
			}
		}
	})
	r.FollowLinks()
	return r
}

// scaledBandwidth rounds down to whole bytes per second. A minimum too small
// to be shaped becomes none.
func scaledBandwidth(b vnet.Bandwidth, scale ratio) vnet.Bandwidth {
	static := b.Min == b.Max
	b.Min = scale.times(b.Min).WholeBytesDown()
	if static {
		b.Max = b.Min
	} else if b.Min < vnet.MinRate {
		b.Min = 0
	}
	return b
}

// scales are the numerator and denominator of the smallest scale at which
// every static reservation among the named links can still be shaped, other
// minima being free to vanish; 0 and 0 if there is no minimum at all.
func scales(r vnet.Request, named map[string]bool) (least, whole int64) {
	static := vnet.Rate(0) // the smallest
	eachBandwidth(&r, func(link, _ string, both *[2]vnet.Bandwidth) {
		for _, b := range both {
			if !named[link] || b.Min == 0 {
				continue
			}
			whole = max(whole, int64(b.Min))
			if b.Min == b.Max && (static == 0 || b.Min < static) {
				static = b.Min
			}
		}
	})
	if static == 0 {
		return 0, whole
	}
	const spare = 8 // for rounding down to whole bytes
	high, low := bits.Mul64(uint64(whole), uint64(vnet.MinRate+spare))
	quotient, _ := bits.Div64(high, low, uint64(static))
	return int64(quotient) + 1, whole
}

// minima adds up all minima of a request.
func minima(r vnet.Request) float64 {
	sum := 0.0
	eachBandwidth(&r, func(_, _ string, both *[2]vnet.Bandwidth) {
		sum += float64(both[vnet.Forward].Min) + float64(both[vnet.Reverse].Min)
	})
	return sum
}

// nothingLeft is the cost of giving up all minima: more than any other offer's.
const nothingLeft = 1e9

// mostChanges is how many changed minima are named one by one.
const mostChanges = 8

// minimaChanges names the minima that differ, and how much longer the same
// volume takes at them.
func minimaChanges(_ time.Time, asked, lower vnet.Request) ([]vnet.Change, float64) {
	whole, left := minima(asked), minima(lower)
	if whole == left {
		return nil, 0
	}
	asked = rewrite(asked)
	var before [][2]vnet.Bandwidth
	eachBandwidth(&asked, func(_, _ string, both *[2]vnet.Bandwidth) { before = append(before, *both) })
	var changes []vnet.Change
	i, names := 0, promisedNames(asked)
	lower = rewrite(lower)
	eachBandwidth(&lower, func(link, stage string, both *[2]vnet.Bandwidth) {
		for _, change := range bandwidthChanges(names[link], stage, before[i], *both) {
			if names[link] != "" && !slices.Contains(changes, change) {
				changes = append(changes, change)
			}
		}
		i++
	})
	if len(changes) > mostChanges {
		share := math.Floor(1000*left/whole) / 10
		changes = []vnet.Change{{What: "min of all links", From: "100%", To: fmt.Sprintf("%g%%", share)}}
	}
	return changes, min(whole/left-1, nothingLeft)
}

// promisedNames are what links are called for people: segments of a chain by the chain.
// Those that functions make have none, since they follow chains.
func promisedNames(r vnet.Request) map[string]string {
	names := make(map[string]string)
	for _, l := range r.Union().Links {
		switch {
		case l.Chain == "":
			names[l.Name] = l.Name
		case l.Sender() == "":
			names[l.Name] = vnet.ChainWay(l.Chain)
		}
	}
	return names
}

// bandwidthChanges names what differs in one place, once if both directions do alike.
func bandwidthChanges(link, stage string, was, is [2]vnet.Bandwidth) []vnet.Change {
	var changes []vnet.Change
	for d := range was {
		if was[d] == is[d] || d == 1 && was[0] == was[1] && is[0] == is[1] {
			continue
		}
		what := "min of " + link
		if was[d].Min == was[d].Max {
			what = "rate of " + link
		}
		if was[0] != was[1] && d == 1 {
			what += " reverse"
		}
		if stage != "" {
			what += " in stage " + stage
		}
		changes = append(changes, vnet.Change{What: what, From: was[d].Min.String(), To: is[d].Min.String()})
	}
	return changes
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
