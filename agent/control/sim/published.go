package sim

// Experiment is one of Zhao's thesis with a rate to be held, in the model, and the dead
// band that the published law had in it, in Mbit/s.
type Experiment struct {
	Scenario
	Deadband float64
}

// Experiments are those of sections 5.3.1 and 5.4.2. Speeds of planes are the thesis's
// (table 5.1, and 400 Mbit/s with 60 hundredths of a core). With the second flow of the
// last one the plane carries three quarters of the rate, as published.
func Experiments() []Experiment {
	const M = 1e6
	chain := func(size func(float64) float64) []Chain {
		return []Chain{{Rate: 400 * M, Via: []int{0}, Size: size}}
	}
	s1 := []Function{fn("s1", 6.7, 0.1)}
	return []Experiment{
		{Scenario{Name: "100 Mbit/s through four functions, 495 s (5.3.1)", Seconds: 495, Seed: 1, Functions: []Function{fn("s1", 4.5, 0.1), fn("fw", 9.1, 0.1), fn("s2", 5, 0.1), fn("nat", 8.3, 0.1)}, Chains: one(100*M, always(1500), 0, 1, 2, 3)}, 6},
		{Scenario{Name: "400 Mbit/s, 1500 s (figure 5.13)", Seconds: 1500, Seed: 2, Functions: s1, Chains: chain(always(1500))}, 6},
		{Scenario{Name: "a flow of 512 bytes joins at 100 s and leaves at 300 s (figure 5.14)", Seconds: 400, Seed: 3, Events: []float64{100, 300}, Functions: s1, Chains: chain(steps([]float64{1500, 1095, 1500}, 100, 300))}, 20},
	}
}

// After is a scenario of which the answer to one change alone is judged.
func (s Scenario) After(event int) Scenario {
	s.Events = s.Events[event : event+1]
	return s
}
