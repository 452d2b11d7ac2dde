package control

import "math"

// Published is the feedback law of Zhao's thesis, section 5.3.4: every second
//
//	C = C + P (rate wanted - mean rate of the window)
//
// if the difference is above a threshold and no change was made in the last
// Cooldown samples. C counts whole hundredths of a core. A plane that carries
// k bit/s with each hundredth is stable below P k = 2 only, so P = 1/5 per
// Mbit/s oscillates on planes faster than 10 Mbit/s per hundredth.
type Published struct {
	P        float64 // hundredths of a core per Mbit/s
	Window   int     // samples of a second each
	Cooldown int     // samples after a change without another one
	Deadband float64 // Mbit/s

	rates []float64
	rest  int
}

// NewPublished has the thesis's values; the threshold is 6 Mbit/s for steady
// traffic and 20 Mbit/s for traffic that changes.
func NewPublished(deadband float64) *Published {
	return &Published{P: 0.2, Window: 5, Cooldown: 5, Deadband: deadband}
}

// Next is the share, in cores, after another second at a rate in Mbit/s. The
// window slides over changes, as printed.
func (p *Published) Next(share, wanted, rate float64) float64 {
	p.rates = append(p.rates, rate)
	if len(p.rates) > p.Window {
		p.rates = p.rates[1:]
	}
	if p.rest > 0 {
		p.rest--
		return share
	}
	if len(p.rates) < p.Window {
		return share
	}
	mean := 0.0
	for _, r := range p.rates {
		mean += r / float64(p.Window)
	}
	if math.Abs(wanted-mean) <= p.Deadband {
		return share
	}
	next := math.Round(100*share+p.P*(wanted-mean)) / 100
	if next = min(max(next, 0.01), 1); next != share {
		p.rest = p.Cooldown
	}
	return next
}
