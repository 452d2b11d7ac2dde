package stall

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// verdict is what a test was told.
type verdict struct{ said string }

func (v *verdict) Helper()                   {}
func (v *verdict) Logf(string, ...any)       {}
func (v *verdict) Skipf(f string, a ...any)  { v.say("skip: "+f, a) }
func (v *verdict) Fatalf(f string, a ...any) { v.say("fail: "+f, a) }
func (v *verdict) say(f string, a []any) {
	if v.said == "" { // a real test would have ended
		v.said = fmt.Sprintf(f, a...)
	}
}

// spin keeps all processors busy, at a higher priority than others where that
// is allowed, for as long as the test takes, a minute at most.
func spin(t *testing.T) {
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		t.Fatal(err)
	}
	for cpu := range len(cpus) * 64 {
		if !cpus.IsSet(cpu) {
			continue
		}
		busy := exec.Command("timeout", "60", "taskset", "-c", fmt.Sprint(cpu), "sh", "-c", "while :; do :; done")
		if os.Geteuid() == 0 {
			busy.Args = append([]string{"nice", "-n", "-10"}, busy.Args...)
			busy.Path, _ = exec.LookPath("nice")
		}
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = busy.Process.Signal(unix.SIGTERM); _ = busy.Wait() })
	}
	time.Sleep(100 * time.Millisecond) // they have begun
}

// On a machine that is kept busy, what lacks is not measured, unless it is
// more than the machine explains.
func TestBusyMachineIsSeen(t *testing.T) {
	spin(t)
	work := func() { time.Sleep(500 * time.Millisecond) }
	for _, c := range []struct {
		lacked float64
		want   string
	}{{0.02, "skip: not measured"}, {Never, "fail: "}} {
		var v verdict
		Try(&v, func() (float64, error) { work(); return c.lacked, errors.New("too little") })
		if !strings.HasPrefix(v.said, c.want) {
			t.Errorf("%g lacks: %q, want %q", c.lacked, v.said, c.want)
		}
	}
}

// What is right at last is measured, and the best attempt is what counts.
func TestBestAttemptCounts(t *testing.T) {
	var v verdict
	lacked := []float64{0.9, 0.5, 0}
	Try(&v, func() (float64, error) {
		now := lacked[0]
		if lacked = lacked[1:]; now > 0 {
			return now, errors.New("too little")
		}
		return 0, nil
	})
	if v.said != "" || len(lacked) != 0 {
		t.Errorf("said %q", v.said)
	}
}

// Without starvation there is no excuse, and with it only one in proportion.
func TestExplains(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		report Report
		lacked float64
		want   bool
	}{
		{Report{Length: 3 * s}, 0.0124, false},
		{Report{Length: 3 * s, Woken: s / 1000}, 0.0124, false},
		{Report{Length: 3 * s, Woken: 37 * s / 1000}, 0.0124, true},
		{Report{Length: 3 * s, Stolen: 30 * s / 1000}, 0.0124, true},
		{Report{Length: 3 * s, Woken: 30 * s / 1000}, 0.5, false},
		{Report{Length: 3 * s, Woken: s}, Never, false},
		{Report{Length: 3 * s, Woken: 30 * s / 1000}, Above(0.009), true},
		{Report{Length: 3 * s, Woken: 30 * s / 1000}, Above(0.02), false},
	} {
		if got := c.report.Explains(c.lacked); got != c.want {
			t.Errorf("%s explains %g: %v", c.report, c.lacked, got)
		}
	}
}

// What comes in time is in time, and what never comes fails.
func TestWait(t *testing.T) {
	var v verdict
	Wait(&v, time.Second, time.Millisecond, func() error { return nil })
	if v.said != "" {
		t.Errorf("in time: %q", v.said)
	}
	Wait(&v, 0, time.Millisecond, func() error { return errors.New("never") })
	if !strings.HasPrefix(v.said, "fail: ") || !strings.Contains(v.said, "never") {
		t.Errorf("never: %q", v.said)
	}
}
