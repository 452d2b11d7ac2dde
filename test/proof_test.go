package test

import (
	"encoding/json"
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
	l := newLab(t, slowBackbone)
	l.up(`network: n
nodes: [{name: a, host: h1}, {name: b, host: h2}, {name: c, host: h2}]
links:
  - {name: full, ends: [a, b], rate: 20Mbit}
  - {name: idle, ends: [a, c], rate: 20Mbit}
`)
	fill := func(port string) {
		t.Helper()
		l.must("exec", "n/b", "--", "iperf3", "-s", "-D", "-p", port)
		load := exec.Command(program, "--run", l.run, "exec", "n/a", "--", "iperf3", "-c", "b", "-p", port, "-u", "-b", "30M", "-t", "600")
		if err := load.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = load.Process.Kill(); _ = load.Wait() })
	}
	fill("5201")
	proof := func(link string) (of vnet.Proof) {
		t.Helper()
		var list []vnet.Proof
		if err := json.Unmarshal([]byte(l.must("proof", "n", "-o", "json")), &list); err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			if p.Link == link && p.From == "a" {
				of = p
			}
		}
		return of
	}
	eventually(t, time.Minute, func() error {
		if p := proof("full"); p.Tested < 5 || p.Availability != 1 {
			return fmt.Errorf("tested for %d s, available %g: %+v", p.Tested, p.Availability, p.Runs)
		}
		return nil
	})
	if p := proof("idle"); p.Link == "" || p.Tested != 0 || p.Availability != -1 || len(p.Runs) == 0 || p.Runs[0].Outcome != vnet.NotTested {
		t.Errorf("of an idle link: %+v", p)
	}
	if out := l.must("events", "n"); strings.Contains(out, "broken") || !strings.Contains(out, "running") {
		t.Errorf("events of a healthy network:\n%s", out)
	}
	told := func(what ...string) {
		t.Helper()
		began := time.Now()
		eventually(t, 20*time.Second, func() error {
			out := l.must("events", "n")
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
		if r := runCommand(exec.Command("nsenter", append([]string{"--net=" + l.host("h1"), "--"}, argv...)...)); r.code != 0 {
			t.Fatalf("%v: %s%s", argv, r.out, r.err)
		}
	}
	restored := func() {
		t.Helper()
		eventually(t, 20*time.Second, func() error {
			out := l.must("events", "n")
			if broken, kept := strings.Count(out, "full a to b  broken"), strings.Count(out, "full a to b  kept"); broken != kept {
				return fmt.Errorf("broken %d times and kept again %d times:\n%s", broken, kept, out)
			}
			return nil
		})
	}
	damage("sh", "-c", `tc class show dev to-h2 | awk '/ceil/ && /leaf/ {print $3}' | while read id; do tc class change dev to-h2 classid $id htb rate 1mbit ceil 1mbit; done`)
	told("repaired")
	restored() // what is broken already is not told again for another cause
	damage("ip", "link", "set", "to-h2", "down")
	told("promise", "substrate link backbone is down")
	damage("ip", "link", "set", "to-h2", "up")
	eventually(t, 20*time.Second, func() error { // wait ends at once where a network is failed
		if r := l.sublet("wait", "n"); r.code != 0 {
			return fmt.Errorf("%s%s", r.out, r.err)
		}
		return nil
	})
	fill("5202")
	restored()
}
