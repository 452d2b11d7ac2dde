package test

import (
	"encoding/json"
	"testing"

	"sublet/lab/workflow"
)

// The application's makespan follows from what it leases, and a tenant beside it who
// fills the wire does not make it longer. Each stage begins on connections that the
// one before it used.
func TestSoakApplication(t *testing.T) {
	l := newLab(t, "demo")
	out := l.must("bench", "application", "--runs", "1", "--time", "150", "-o", "json")
	var rows []workflow.Row
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 6 {
		t.Fatalf("%d rows: %s", len(rows), out)
	}
	for i, r := range rows {
		if r.Slowdown > 1.15 || r.Makespan > 1.25*r.Published.Makespan || r.Makespan < 0.8*r.Published.Makespan {
			t.Errorf("%s, rival %t: %.1f min, published %.1f, %.2f of that alone", r.Allocation, r.Rival, r.Makespan, r.Published.Makespan, r.Slowdown)
		}
		if i%3 > 0 && r.Makespan >= rows[i-1].Makespan {
			t.Errorf("%s takes %.1f min, %s %.1f", r.Allocation, r.Makespan, rows[i-1].Allocation, rows[i-1].Makespan)
		}
	}
}
