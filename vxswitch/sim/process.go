package sim

import "math/rand/v2"

// process makes the times between arrivals, in nanoseconds.
type process interface {
	gap(r *rand.Rand) float64
}

// poisson has exponential gaps.
type poisson struct{ mean float64 }

func (p poisson) gap(r *rand.Rand) float64 { return p.mean * r.ExpFloat64() }

// constant has equal gaps, the first of a random length so that inputs do not
// beat in step.
type constant struct {
	mean    float64
	started bool
}

func (c *constant) gap(r *rand.Rand) float64 {
	if !c.started {
		c.started = true
		return c.mean * r.Float64()
	}
	return c.mean
}

// MMPP is a Markov-modulated Poisson process of two states, on and off if the
// second arrival rate is zero (thesis figure 4.5). Rates are per second.
type MMPP struct {
	Arrival    [2]float64 // lambda: packets per second in each state
	Transition [2]float64 // omega: how often each state is left, per second
}

// Bursty makes an MMPP of what can be said without rates: the rates of its
// states as multiples of its mean, and how many packets the state of the
// higher rate lasts on average. With the fraction f = (1-low)/(peak-low) of
// the time in that state the mean comes out.
func Bursty(mean, peak, low, burst float64) MMPP {
	f := (1 - low) / (peak - low)
	leave := peak * mean / burst
	return MMPP{Arrival: [2]float64{peak * mean, low * mean}, Transition: [2]float64{leave, leave * f / (1 - f)}}
}

// Mean is the packets per second over a long time.
func (m MMPP) Mean() float64 {
	both := m.Transition[0] + m.Transition[1]
	return (m.Arrival[0]*m.Transition[1] + m.Arrival[1]*m.Transition[0]) / both
}

// mmpp walks through the states of an MMPP. In a state the next thing to
// happen, an arrival or a change of state, comes after an exponential time of
// the sum of both rates, and is an arrival with the arrival rate's part of it.
type mmpp struct {
	spacing [2]float64 // mean time to the next thing, ns
	arrival [2]float64 // probability that it is an arrival
	state   int
	started bool
	first   float64 // probability of beginning in state 0
}

func (m MMPP) process() *mmpp {
	p := &mmpp{first: m.Transition[1] / (m.Transition[0] + m.Transition[1])}
	for s := range 2 {
		both := m.Arrival[s] + m.Transition[s]
		p.spacing[s], p.arrival[s] = 1e9/both, m.Arrival[s]/both
	}
	return p
}

func (p *mmpp) gap(r *rand.Rand) float64 {
	if !p.started {
		p.started = true
		if r.Float64() >= p.first {
			p.state = 1
		}
	}
	for total := 0.0; ; {
		total += p.spacing[p.state] * r.ExpFloat64()
		if r.Float64() < p.arrival[p.state] {
			return total
		}
		p.state ^= 1
	}
}
