package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The winner tree says what looking at every slot says.
func TestTimeline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "slots")
		line := newTimeline(n)
		times := make([]time.Duration, n)
		for i := range times {
			times[i] = never
		}
		for range rapid.IntRange(1, 200).Draw(t, "changes") {
			slot := rapid.IntRange(0, n-1).Draw(t, "slot")
			at := time.Duration(rapid.Int64Range(0, 9).Draw(t, "at"))
			if at == 9 {
				at = never
			}
			times[slot] = at
			line.set(slot, at)
			want := 0
			for i, x := range times {
				if x < times[want] {
					want = i
				}
			}
			if got, at := line.earliest(); at != times[want] || at != never && got != want {
				t.Fatalf("earliest is %d at %d, want %d at %d", got, at, want, times[want])
			}
		}
	})
}
