package embed

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// TestNeverOverbooks: whatever Embed accepts is valid for the independent
// checker, its bookings leave nothing below zero, and releasing them leaves
// nothing behind. What it refuses, the exact twin refuses too, but for a share
// that is counted.
func TestNeverOverbooks(t *testing.T) {
	accepted, refused, missed := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawSmall(t)
		mapping, err := Embed(c.sub, c.cal, c.request, c.window)
		var infeasible *Infeasible
		switch {
		case errors.As(err, &infeasible):
			refused++
			if len(infeasible.Reasons) == 0 {
				t.Fatal("refused without a reason")
			}
			if feasible(c.sub, c.cal, c.request, c.window) {
				missed++
				t.Fatalf("missed: %v", err)
			}
		case err != nil:
			t.Fatal(err)
		default:
			accepted++
			if err := CheckMapping(c.sub, c.cal, c.request, c.window, mapping); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Logf("accepted %d, refused %d, of which the exact twin embeds %d", accepted, refused, missed)
}
