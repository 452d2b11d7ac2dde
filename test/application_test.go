package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"sublet/internal/stall"
	"sublet/lab/workflow"
)

// The application's makespan follows from what it leases, and a tenant beside it who
// fills the wire does not make it longer. Each stage begins on connections that the
// one before it used.
func TestSoakApplication(t *testing.T) {
	l := newLab(t, "demo")
	stall.Try(t, func() (lacked float64, wrong error) {
		out := l.must("bench", "application", "--runs", "1", "--time", "150", "-o", "json")
		var rows []workflow.Row
		if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 2*len(workflow.Allocations) {
			t.Fatalf("%v, %d rows: %s", err, len(rows), out)
		}
		for i, r := range rows {
			longer := max(r.Slowdown-1, r.Makespan/r.Published.Makespan-1)
			if lacked = max(lacked, longer/(1+longer)); longer > 0.15 {
				wrong = errors.Join(wrong, fmt.Errorf("%s, rival %t: %.1f min, published %.1f, %.2f of that alone", r.Allocation, r.Rival, r.Makespan, r.Published.Makespan, r.Slowdown))
			}
			if r.Makespan < 0.8*r.Published.Makespan {
				t.Fatalf("%s has more than it leased: %.1f min, published %.1f", r.Allocation, r.Makespan, r.Published.Makespan)
			}
			if i%len(workflow.Allocations) > 0 && r.Makespan >= rows[i-1].Makespan {
				wrong = errors.Join(wrong, fmt.Errorf("%s takes %.1f min, %s %.1f", r.Allocation, r.Makespan, rows[i-1].Allocation, rows[i-1].Makespan))
			}
		}
		return lacked, wrong
	})
}
