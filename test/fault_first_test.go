package test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestProgramsBeginAgainWithTheirNode: the supervisor and the first process of a node
// are killed in any order, and commands of the node come in between, which make it
// a first process anew. Programs run again, also those that nobody restarts.
func TestProgramsBeginAgainWithTheirNode(t *testing.T) {
	t.Parallel()
	n := seed(t)
	random := rand.New(rand.NewPCG(n, 5))
	l := newLab(t, "demo")
	l.up(`network: n
nodes:
  - {name: a, host: h1, run: [{cmd: [sleep, "98764"]}]}
  - {name: b, host: h1, run: [{cmd: [sleep, "98764"], restart: on-failure}]}
links: [{ends: [a, b], rate: 1Mbit}]
`)
	nodes := []string{"a", "b"}
	kill := func(node, group string) {
		for _, pid := range l.pidsIn("h1", "root.n."+node, group) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // one that has ended is fine
		}
	}
	for round := range 6 {
		node, did := nodes[round%2], []string{"pause", "exec"} // round 0 and 1: what no chance is left to
		for range random.IntN(4) * min(round/2, 1) {
			did = append(did, []string{"pause", "init", "exec"}[random.IntN(3)])
		}
		if round > 1 {
			random.Shuffle(len(did), func(i, j int) { did[i], did[j] = did[j], did[i] })
		}
		for _, what := range did {
			if what == "exec" {
				l.sublet("exec", "n/"+node, "--", "true") // it may end with the node
			} else {
				kill(node, what)
			}
			if round > 1 {
				time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
			}
		}
		eventually(t, patience, func() error {
			if out := l.sublet("ps", "n/"+node).out; !strings.Contains(out, "98764") {
				return fmt.Errorf("after %v its program does not run in %s:\n%s", did, node, out)
			}
			if r := l.sublet("wait", "n", "--timeout", "1s"); r.code != 0 {
				return fmt.Errorf("after %v: %s", did, r.err)
			}
			return nil
		})
	}
}
