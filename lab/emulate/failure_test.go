package emulate

import (
	"testing"
	"time"
)

// Packets count by when they left: those of an affected flow until it had
// moved, those of others never, and those that may still be under way not.
func TestWhatAFailureDid(t *testing.T) {
	const at = 5 * time.Second
	x := &Failure{Bin: bin, Before: beforeDamage}
	var sent [2][]float64
	for side := range sent {
		sent[side], x.Rates[side] = make([]float64, 50), make([]float64, 50)
	}
	flow := func(lost func(since time.Duration) bool) (left, arrived []time.Duration) {
		for when := 3 * time.Second; when < at+afterDamage; when += 10 * time.Millisecond {
			left = append(left, when)
			if lost(when - at) {
				arrived = append(arrived, 0)
			} else {
				arrived = append(arrived, when+time.Millisecond)
			}
		}
		return left, arrived
	}
	left, arrived := flow(func(since time.Duration) bool { return since >= 0 && since < 120*time.Millisecond })
	x.add(left, arrived, at, true, &sent)
	left, arrived = flow(func(since time.Duration) bool {
		return since == 500*time.Millisecond || since == -20*time.Millisecond || since > afterDamage-50*time.Millisecond
	})
	x.add(left, arrived, at, false, &sent)
	if x.Flows != 2 || x.Affected != 1 || len(x.Outages) != 1 || x.Outages[0] != 110*time.Millisecond || x.Lost != 1 {
		t.Errorf("%+v", x)
	}
	if sent[0][0] != 10 || x.Rates[0][0] != 10 || x.Rates[0][10] != 0 || x.Rates[0][11] != 8 || x.Rates[0][12] != 10 {
		t.Errorf("sent %v, received %v", sent[0], x.Rates[0])
	}
}
