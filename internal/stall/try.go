package stall

import (
	"math"
	"time"
)

// T is what is needed of a test.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Never says that no want of a processor explains what was measured: more than
// there may be, or what has nothing to do with time.
var Never = math.Inf(1)

// tries bounds how often something is measured.
const tries = 3

// Try measures until nothing is wrong, at most three times. If something is, the
// best of them decides: the test is skipped if the machine explains what
// lacked, as a part of what was expected, and fails if it does not.
func Try(t T, measure func() (lacked float64, wrong error)) {
	t.Helper()
	best, account, reason := Never, Report{}, error(nil)
	for try := range tries {
		watch := Start()
		lacked, wrong := measure()
		report := watch.Stop()
		if wrong == nil {
			return
		}
		t.Logf("wrong: %v; %s", wrong, report)
		if try == 0 || lacked < best {
			best, account, reason = lacked, report, wrong
		}
	}
	if account.Explains(best) {
		t.Skipf("not measured: %v; %s", reason, account)
	}
	t.Fatalf("%v; %s", reason, account)
}

// Above is what Try is told where something was more than expected by a part:
// what had queued up before a window explains as much as the wait, no multiple.
func Above(part float64) float64 { return costs * part }

// Late is what Try is told where something took longer than a bound. Of a bound
// that began before the watch little may be left.
func Late(took, bound time.Duration) float64 {
	return float64(took-bound) / float64(max(bound, time.Second))
}

// InTime ends a watch that began with what has a bound. What took longer is not
// measured if the machine explains that, and else fails the test.
func (w *Watch) InTime(t T, bound time.Duration, what string) {
	t.Helper()
	report := w.Stop()
	switch took := report.Length; {
	case took <= bound:
	case report.Explains(Late(took, bound)):
		t.Skipf("not measured: %s took %s in place of %s; %s", what, took.Round(time.Millisecond), bound, report)
	default:
		t.Fatalf("%s took %s, more than %s; %s", what, took.Round(time.Millisecond), bound, report)
	}
}

// patience is how much longer than its bound something is waited for while the
// machine is busy.
func patience(bound time.Duration) time.Duration { return max(2*bound, 10*time.Second) }

// Wait polls until try succeeds within a bound. What comes later is not
// measured if the machine explains that, and else fails the test; so does what
// does not come at all.
func Wait(t T, bound, every time.Duration, try func() error) {
	t.Helper()
	begin, watch := time.Now(), Start()
	for {
		err := try()
		took := time.Since(begin)
		switch {
		case err == nil && took <= bound+every:
			watch.Stop()
			return
		case err == nil:
			watch.InTime(t, bound, "it")
			return
		case took > bound+patience(bound), took > bound && !watch.soFar().Explains(Late(took, bound)):
			t.Fatalf("not within %s: %v; %s", took.Round(time.Millisecond), err, watch.Stop())
			return
		}
		time.Sleep(every)
	}
}
