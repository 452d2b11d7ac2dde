package test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// TestSoakProofTellsTheTruth: a link that is filled is tested and kept, nothing is
// alarmed; one that is not filled is not tested. A wire that is cut, and a class
// whose rate is lowered behind the agent's back, are told within seconds, with
// their cause.
func TestSoakProofTellsTheTruth(t *testing.T) {
	t.Parallel()
	s := newSaboteur(t)
	s.fill("5201")
	eventually(t, time.Minute, func() error {
		if p := s.proof("full"); p.Tested < 5 || p.Availability != 1 {
			return fmt.Errorf("tested for %d s, available %g: %+v", p.Tested, p.Availability, p.Runs)
		}
		return nil
	})
	if p := s.proof("idle"); p.Link == "" || p.Tested != 0 || p.Availability != -1 || len(p.Runs) == 0 || p.Runs[0].Outcome != vnet.NotTested {
		t.Errorf("of an idle link: %+v", p)
	}
	if out := s.must("events", "n"); strings.Contains(out, "broken") || !strings.Contains(out, "running") {
		t.Errorf("events of a healthy network:\n%s", out)
	}
	told := func(what ...string) {
		t.Helper()
		began := time.Now()
		eventually(t, 20*time.Second, func() error {
			out := s.must("events", "n")
			for _, word := range what {
				if !strings.Contains(out, word) {
					return fmt.Errorf("%q is not among the events:\n%s", word, out)
				}
			}
			return nil
		})
		t.Logf("%v told after %s", what, time.Since(began).Round(100*time.Millisecond))
	}
	damage := func(argv ...string) {
		t.Helper()
		if r := runCommand(exec.Command("nsenter", append([]string{"--net=" + s.host("h1"), "--"}, argv...)...)); r.code != 0 {
			t.Fatalf("%v: %s%s", argv, r.out, r.err)
		}
	}
	damage("sh", "-c", `tc class show dev to-h2 | awk '/ceil/ && /leaf/ {print $3}' | while read id; do tc class change dev to-h2 classid $id htb rate 1mbit ceil 1mbit; done`)
	told("repaired")
	s.restored(20 * time.Second) // what is broken already is not told again for another cause
	damage("ip", "link", "set", "to-h2", "down")
	told("promise", "substrate link backbone is down")
	damage("ip", "link", "set", "to-h2", "up")
	eventually(t, 20*time.Second, func() error { // wait ends at once where a network is failed
		if r := s.sublet("wait", "n"); r.code != 0 {
			return fmt.Errorf("%s%s", r.out, r.err)
		}
		return nil
	})
	s.fill("5202")
	s.restored(20 * time.Second)
}
