package agent

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sublet/plan"
)

// What fails slowly is tried again more and more rarely; what fails at once,
// another wish and deletion do not wait.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFake()
		takes := 5 * time.Second
		k.fail = func(plan.Step) error {
			time.Sleep(takes)
			return errors.New("hangs")
		}
		p := withBackoff([]Part{k})[0]
		try := func(op plan.Op, cpu int) (tried bool) {
			before := len(k.log)
			item := plan.VNode{Lease: lease, Node: "a", Owner: uint32(cpu)}
			if err := p.Do(t.Context(), plan.Step{Op: op, Item: item}); err == nil {
				t.Error("no error")
			}
			return len(k.log) > before
		}
		for i, c := range []struct {
			wait  time.Duration
			op    plan.Op
			owner int
			tried bool
		}{
			{0, plan.Set, 1, true},
			{0, plan.Set, 1, false},
			{49 * time.Second, plan.Set, 1, false},
			{2 * time.Second, plan.Set, 1, true},
			{51 * time.Second, plan.Set, 1, false}, // twice as long now
			{50 * time.Second, plan.Set, 1, true},
			{0, plan.Set, 2, true},
			{0, plan.Set, 2, false},
			{0, plan.Delete, 2, true},
			{0, plan.Set, 2, true},
		} {
			time.Sleep(c.wait)
			if tried := try(c.op, c.owner); tried != c.tried {
				t.Errorf("try %d: done %v, want %v", i, tried, c.tried)
			}
		}
		time.Sleep(longestPause)
		takes = 0
		for range 2 {
			if !try(plan.Set, 2) {
				t.Error("what fails at once waits")
			}
		}
	})
}
