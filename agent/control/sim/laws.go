package sim

import "sublet/agent/control"

// Ours is the controller of this project for a scenario. It is told profiles,
// as far as the scenario has some, and begins with what they say.
func Ours(s Scenario) *control.Controller {
	begin := s.begin()
	var functions []control.Function
	for i, f := range s.Functions {
		functions = append(functions, control.Function{Name: f.Name, Profile: f.Profile, Share: begin[i]})
	}
	var chains []control.Chain
	for _, ch := range s.Chains {
		chains = append(chains, control.Chain{Name: "chain", Rate: ch.Rate, Via: ch.Via})
	}
	c, err := control.New(functions, chains, float64(len(functions)))
	if err != nil {
		panic(err) // scenarios are of this package
	}
	return c
}

// begin is what functions need at the beginning.
func (s Scenario) begin() []float64 {
	return newPlant(s.Functions, s.Chains, make([]float64, len(s.Functions)), s.Seed).needs()
}

// Unchanged gives what is needed at the beginning, for ever.
func Unchanged(s Scenario) Law { return Static(s.begin()) }

// Thesis is the published law: it controls the first function of the first chain,
// and the others have plenty.
type Thesis struct {
	law             *control.Published
	rate            float64
	shares          []float64
	first           int
	seconds, served float64
}

// NewThesis has the values of the thesis.
func NewThesis(s Scenario, deadband float64) *Thesis {
	t := &Thesis{law: control.NewPublished(deadband), rate: s.Chains[0].Rate, shares: s.begin(), first: s.Chains[0].Via[0]}
	for i := range t.shares {
		if i != t.first {
			t.shares[i] = 1
		}
	}
	return t
}

// Shares are what it gives.
func (t *Thesis) Shares() []float64 { return t.shares }

// Step acts once a second.
func (t *Thesis) Step(seconds float64, _ []control.Count, samples []control.Sample) bool {
	t.seconds += seconds
	t.served += 8 * samples[t.first].Served[0].Bytes
	if t.seconds < 1-seconds/2 {
		return false
	}
	next := t.law.Next(t.shares[t.first], t.rate/1e6, t.served/t.seconds/1e6)
	t.seconds, t.served = 0, 0
	changed := next != t.shares[t.first]
	t.shares = append([]float64(nil), t.shares...)
	t.shares[t.first] = next
	return changed
}
