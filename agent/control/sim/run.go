package sim

import (
	"math"
	"slices"

	"sublet/agent/control"
)

// Law decides shares from samples.
type Law interface {
	// Step says whether shares changed.
	Step(seconds float64, entered []control.Count, samples []control.Sample) bool
	Shares() []float64
}

// Scenario is one experiment.
type Scenario struct {
	Name      string
	Functions []Function
	Chains    []Chain
	Seconds   float64
	Events    []float64 // when something changes at once
	Seed      uint64
}

// Outcome of a scenario under a law, the worst chain's.
type Outcome struct {
	Error         float64 // mean over seconds of |measured - promised| / measured, in steady times
	Reaction      float64 // seconds from a change until the rate is right for a second; never: 15
	Reallocations int     // after one change until a second after it was answered, at most
	Overshoot     float64 // above the promised rate after the first answer to a change
	Processor     float64 // given over needed, mean of steady times
	All           int     // reallocations of the whole run
}

// Bounds of judging.
const (
	settle  = 2.0  // seconds after the beginning and after a change that are not steady
	never   = 15.0 // seconds after which an answer is not waited for
	right   = 0.05 // of the promised rate, from which a rate is right
	stays   = 1.0  // seconds that it has to be
	enough  = 0.99 // of the promised rate that must be offered in a second that is judged
	between = 3    // intervals of a mean of the rate
)

// record is what happened in an interval.
type record struct {
	time    float64 // its end
	carried []float64
	offered []float64
	given   float64
	needed  float64
	changed bool
}

// Static leaves shares as they are.
type Static []float64

// Step does nothing.
func (Static) Step(float64, []control.Count, []control.Sample) bool { return false }

// Shares are those of the beginning.
func (s Static) Shares() []float64 { return s }

// Run plays a scenario with a law.
func Run(s Scenario, law Law) Outcome {
	p := newPlant(s.Functions, s.Chains, law.Shares(), s.Seed)
	var all []record
	for p.now < s.Seconds-tick/2 {
		needed := sum(p.needs())
		given := sum(p.share)
		p.interval()
		r := record{time: p.now, given: given, needed: needed}
		for j := range s.Chains {
			r.carried = append(r.carried, p.carried[j]/Interval)
			r.offered = append(r.offered, 8*p.entered[j].Bytes/Interval)
		}
		r.changed = law.Step(Interval, p.entered, p.samples)
		p.set(law.Shares())
		all = append(all, r)
	}
	return judge(s, all)
}

func sum(list []float64) (total float64) {
	for _, x := range list {
		total += x
	}
	return total
}

func judge(s Scenario, all []record) (o Outcome) {
	for _, r := range all {
		if r.changed {
			o.All++
		}
	}
	for j, ch := range s.Chains {
		o.Error = max(o.Error, steadyError(s, all, j, ch.Rate))
	}
	for _, e := range s.Events {
		slowest := 0.0
		for j, ch := range s.Chains {
			reaction, over := answer(s, all, j, ch.Rate, e)
			o.Overshoot = max(o.Overshoot, over)
			if reaction < 0 {
				reaction = never
			}
			slowest = max(slowest, reaction)
		}
		o.Reaction = max(o.Reaction, slowest)
		o.Reallocations = max(o.Reallocations, changes(all, e, e+slowest+stays))
	}
	given, needed := 0.0, 0.0
	for _, r := range all {
		if s.steady(r.time) && slices.Min(r.offered) > 0 {
			given, needed = given+r.given, needed+r.needed
		}
	}
	o.Processor = given / needed
	return o
}

// steady says whether nothing changed shortly before.
func (s Scenario) steady(t float64) bool {
	for _, e := range append([]float64{0}, s.Events...) {
		if t > e-Interval && t <= e+settle {
			return false
		}
	}
	return true
}

// steadyError is the mean absolute error over whole seconds in which at least
// the promised rate was offered all the time.
func steadyError(s Scenario, all []record, j int, rate float64) float64 {
	const per = 10 // intervals of a second
	total, n := 0.0, 0
	for at := 0; at+per <= len(all); at += per {
		carried, judged := 0.0, true
		for _, r := range all[at : at+per] {
			judged = judged && s.steady(r.time) && r.offered[j] >= enough*rate
			carried += r.carried[j] / float64(per)
		}
		if judged && carried > 0 {
			total += math.Abs(carried-rate) / carried
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return total / float64(n)
}

// answer is how long after a change the rate is right for a second, and the most
// that it is above the promise after the first reallocation. Only intervals in
// which the rate is offered count.
func answer(s Scenario, all []record, j int, rate, event float64) (reaction, over float64) {
	reaction = -1
	since, answered := event, false
	for n, r := range all {
		if r.time <= event || n < between || r.offered[j] < enough*rate {
			continue
		}
		if r.time > event+never || s.another(event, r.time) {
			break
		}
		mean := 0.0
		for _, q := range all[n+1-between : n+1] {
			mean += q.carried[j] / between
		}
		if answered { // both intervals of the mean are after it
			over = max(over, mean/rate-1)
		}
		answered = changes(all[:n], event, r.time-between*Interval+Interval/2) > 0
		if reaction < 0 && math.Abs(mean-rate) > right*rate {
			since = r.time
		} else if reaction < 0 && r.time-since >= stays {
			reaction = since - event
		}
	}
	return reaction, over
}

// another says whether the next change was made.
func (s Scenario) another(event, t float64) bool {
	for _, e := range s.Events {
		if e > event && t > e {
			return true
		}
	}
	return false
}

// changes counts reallocations in a time.
func changes(all []record, from, to float64) (n int) {
	for _, r := range all {
		if r.changed && r.time > from+Interval/2 && r.time <= to {
			n++
		}
	}
	return n
}
