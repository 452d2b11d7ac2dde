package vnode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/plan"
	"sublet/vnet"
)

// TestNodeStandsStill: programs, with what starts them, and commands of a paused node
// stand still, whoever is agent, and go on as the same processes; a node that is
// deleted meanwhile leaves nothing.
func TestNodeStandsStill(t *testing.T) {
	p, h := newPart(t)
	n := node("n0", 1000)
	s := given(
		vnet.Program{Cmd: shell("while :; do echo x >>/tmp/beats; sleep 0.02; done")},
		vnet.Program{Cmd: shell("exec sleep 0.3"), Restart: vnet.RestartAlways},
	)
	do(t, p, plan.Add, n, s)
	beats := func() int { out, _ := run(t, p, n, "cat", "/tmp/beats"); return strings.Count(out, "x") }
	wait(t, "the first beat", func() bool { return beats() > 0 })
	was := beating(t, p, n)
	is := plan.Pause{Lease: n.Lease, Node: n.Node}
	do(t, p, plan.Add, is)
	has(t, p, n, s, is)
	stands := func(when string) {
		t.Helper()
		keeper, err := p.paused(n.Key())
		check(t, err)
		path := fmt.Sprintf("/proc/%d/root/tmp/beats", keeper)
		var before, now unix.Stat_t
		check(t, unix.Stat(path, &before))
		time.Sleep(200 * time.Millisecond) // ten beats
		check(t, unix.Stat(path, &now))
		if before.Size != now.Size {
			t.Errorf("%s it goes on: %d, %d bytes", when, before.Size, now.Size)
		}
	}
	stands("paused")
	next := partOn(h)
	t.Cleanup(next.Close)
	has(t, next, n, s, is)
	stands("with another agent")
	do(t, next, plan.Delete, is)
	has(t, next, n, s)
	wait(t, "it to go on", func() bool { return beats() > 0 })
	if now := beating(t, next, n); now != was {
		t.Errorf("process %d is now %d", was, now)
	}
	before := beats()
	wait(t, "more beats", func() bool { return beats() > before })
	do(t, next, plan.Add, is)
	do(t, next, plan.Delete, is, s, n)
	if files, err := h.Names(stillKind); err != nil || len(files) != 0 {
		t.Errorf("left: %v %v", files, err)
	}
	do(t, next, plan.Add, n, s, is)
	do(t, next, plan.Delete, n, s) // as if nobody knew that it is paused
	has(t, next)
}

// beating is the process that writes beats, by its number in the node.
func beating(t *testing.T, p *Part, n plan.VNode) int {
	t.Helper()
	list, err := p.Processes(n.Key())
	check(t, err)
	for _, one := range list {
		if strings.Contains(one.Command, "beats") {
			return one.PID
		}
	}
	t.Fatalf("it does not run: %+v", list)
	return 0
}

// TestWhatRunsInAPausedNodeIsFound: a command that entered a node after it was
// frozen shows, and is frozen by the next step.
func TestWhatRunsInAPausedNodeIsFound(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	is := plan.Pause{Lease: n.Lease, Node: n.Node}
	do(t, p, plan.Add, n, is)
	has(t, p, n, is)
	do(t, p, plan.Add, given(vnet.Program{Cmd: shell("exec sleep 100")}))
	found := func() plan.Pause { return plan.Of[plan.Pause](observe(t, p))[0] }
	wait(t, "it to be found", func() bool { return found() == is.Partly() })
	do(t, p, plan.Set, is)
	if found() != is {
		t.Errorf("it is %s", found())
	}
}
