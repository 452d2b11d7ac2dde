package test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// What runs in a paused network stands still, through kills of its agent and of the
// server, and goes on as the same process.
func TestPausedNetworkStandsStill(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "demo")
	s.must("up", s.file("still.yaml", `network: still
nodes:
  - {name: a, host: h1, run: [{cmd: [sh, -c, "while :; do echo x; sleep 0.02; done"]}]}
  - {name: b, host: h2}
links:
  - {name: ab, ends: [a, b], rate: 1200Mbit}
`))
	beats := func() int { return strings.Count(s.must("logs", "still/a"), "x") }
	goesOn := func() {
		t.Helper()
		before := beats()
		eventually(t, 10*time.Second, func() error {
			if beats() == before {
				return fmt.Errorf("nothing after %d beats", before)
			}
			return nil
		})
	}
	goesOn()
	was := s.must("ps", "still/a", "-o", "json")
	if out := s.must("pause", "still", "--give-back"); !strings.Contains(out, "still is paused since") {
		t.Errorf("it says %q", out)
	}
	before := beats()
	for _, name := range []string{agentOf("h1"), server} {
		s.kill(name)
		s.start(name)
	}
	eventually(t, 10*time.Second, func() error {
		if r := s.sublet("exec", "still/a", "--", "true"); r.code != 5 || !strings.Contains(r.err, "sublet resume still") {
			return fmt.Errorf("exit code %d, %s", r.code, r.err)
		}
		return nil
	})
	if out := s.must("proof", "still"); !strings.Contains(out, "paused since") || !strings.Contains(out, "not tested") {
		t.Errorf("its proof says %q", out)
	}
	other := s.file("other.yaml", `network: other
nodes: [{name: a, host: h1}, {name: b, host: h2}]
links: [{name: ab, ends: [a, b], rate: 1200Mbit}]
`)
	s.must("up", other)
	offer := s.file("offer.yaml", "")
	if r := s.sublet("resume", "still", "--offer", offer); r.code != 3 || !strings.Contains(r.err, "offer") {
		t.Errorf("there is room for it: exit code %d, %s", r.code, r.err)
	}
	if text, err := os.ReadFile(offer); err != nil || !strings.Contains(string(text), "network: still") {
		t.Errorf("the offer: %s %v", text, err)
	}
	if now := beats(); now != before {
		t.Errorf("it went on from %d to %d", before, now)
	}
	s.must("down", "other")
	s.must("resume", "still")
	goesOn()
	if pidsOf(was) != pidsOf(s.must("ps", "still/a", "-o", "json")) {
		t.Errorf("other processes run than before: %s", was)
	}
	s.must("pause", "still")
	s.must("down", "still")
}

// pidsOf is the first process of a list.
func pidsOf(text string) string {
	_, rest, _ := strings.Cut(text, `"pid":`)
	pid, _, _ := strings.Cut(rest, ",")
	return pid
}
