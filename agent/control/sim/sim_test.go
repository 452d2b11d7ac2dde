package sim

import (
	"testing"

	"sublet/agent/control"
)

// Every scenario keeps to the targets, but for the reactions that
// docs/chains-processors.md names: there a second correction is needed.
func TestScenariosKeepToTheTargets(t *testing.T) {
	slow := map[string]float64{"another size after each of 5 s off": 1.5}
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			o := Run(s, Ours(s))
			for _, missed := range o.Missed() {
				if missed != "reaction" || o.Reaction > slow[s.Name] {
					t.Errorf("%s: %+v", missed, o)
				}
			}
		})
	}
}

// With other noise and other errors of quotas, one run in ten may need a
// correction more.
func TestOtherNoise(t *testing.T) {
	runs, missed := 0, 0
	for _, s := range Scenarios() {
		for seed := range 6 {
			s.Seed = uint64(500 + seed)
			o := Run(s, Ours(s))
			if runs++; len(o.Missed()) > 0 {
				missed++
			}
			if o.Error > 1.5*Targets.Error || o.Reaction > 5 || o.Overshoot > 0.15 || o.Processor > 1.2 {
				t.Errorf("%s, seed %d: %+v", s.Name, s.Seed, o)
			}
		}
	}
	if missed*6 > runs {
		t.Errorf("%d of %d runs miss a target", missed, runs)
	}
}

// The control: what is right for ours must be wrong for shares that stay, or the
// scenarios would show nothing.
func TestScenariosNeedControl(t *testing.T) {
	for _, s := range Scenarios() {
		if len(s.Events) > 0 && s.Name != "a firewall begins to block 40 %" {
			if o := Run(s, Unchanged(s)); o.Error < 2*Targets.Error {
				t.Errorf("%s: shares that stay are wrong by %.2f %% only", s.Name, 100*o.Error)
			}
		}
	}
}

// The published law answers as published where the plane is as slow as the
// thesis's, and never comes to rest on one faster than 10 Mbit/s per hundredth.
func TestPublishedLaw(t *testing.T) {
	for _, mbit := range []float64{6, 6.5, 7} {
		if join, leave, late := JoinAndLeave(control.NewPublished(20), mbit); join != 2 || leave != 3 || late != 0 {
			t.Errorf("%g Mbit/s per hundredth: %d reallocations on join, %d on leave, %d after; published are 2 and 3", mbit, join, leave, late)
		}
	}
	for _, mbit := range []float64{10, 11, 25, 50} {
		if _, _, late := JoinAndLeave(control.NewPublished(20), mbit); late < 10 {
			t.Errorf("%g Mbit/s per hundredth: %d reallocations in the last 100 s: does not oscillate", mbit, late)
		}
	}
}

// One seed gives one outcome.
func TestRunsAreRepeatable(t *testing.T) {
	s := Scenarios()[9]
	if a, b := Run(s, Ours(s)), Run(s, Ours(s)); a != b {
		t.Errorf("%+v and %+v", a, b)
	}
}

// In the thesis's experiments the published law does what was published, on planes of that
// speed: two or three reallocations after each change, at rest within 15 s, and a smaller
// error than with shares that stay. Ours answers sooner.
func TestExperimentsOfTheThesis(t *testing.T) {
	for _, e := range Experiments() {
		published, ours := Run(e.Scenario, NewThesis(e.Scenario, e.Deadband)), Run(e.Scenario, Ours(e.Scenario))
		if static := Run(e.Scenario, Unchanged(e.Scenario)); ours.Error > 0.01 || ours.Error >= static.Error {
			t.Errorf("%s: error %.4f, with shares that stay %.4f", e.Name, ours.Error, static.Error)
		}
		for i := range e.Events {
			one, other := Run(e.After(i), NewThesis(e.Scenario, e.Deadband)), Run(e.After(i), Ours(e.Scenario))
			if one.Reallocations < 2 || one.Reallocations > 3 || one.Reaction >= never || other.Reaction > 1 || other.Reallocations > 2 {
				t.Errorf("%s, change %d: published %+v, ours %+v", e.Name, i, one, other)
			}
		}
		if len(e.Events) == 0 && published.All > 10 {
			t.Errorf("%s: the published law changes shares %d times", e.Name, published.All)
		}
	}
}
