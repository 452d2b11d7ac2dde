package sim

// Targets of control: what an outcome may be at most.
var Targets = Outcome{Error: 0.01, Reaction: 1, Reallocations: 2, Overshoot: 0.1, Processor: 1.1}

// Missed lists the targets that an outcome is beyond.
func (o Outcome) Missed() (list []string) {
	const rounding = 1e-6
	for _, t := range []struct {
		name     string
		is, most float64
	}{
		{"error", o.Error, Targets.Error},
		{"reaction", o.Reaction, Targets.Reaction},
		{"reallocations", float64(o.Reallocations), float64(Targets.Reallocations)},
		{"overshoot", o.Overshoot, Targets.Overshoot},
		{"processor", o.Processor, Targets.Processor},
	} {
		if t.is > t.most+rounding {
			list = append(list, t.name)
		}
	}
	return list
}

// Worse has the greater of each figure.
func (o Outcome) Worse(p Outcome) Outcome {
	return Outcome{
		Error: max(o.Error, p.Error), Reaction: max(o.Reaction, p.Reaction),
		Reallocations: max(o.Reallocations, p.Reallocations), Overshoot: max(o.Overshoot, p.Overshoot),
		Processor: max(o.Processor, p.Processor), All: max(o.All, p.All),
	}
}
