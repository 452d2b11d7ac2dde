package test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The agent is killed right before every single message to the kernel of a
// deploy and of a release, and every step on files, mounts and control groups:
// all of them, one after the other. Started again it always gets there.
func TestSoakAgentKilledAtEveryMessage(t *testing.T) {
	t.Parallel()
	for name, network := range map[string]string{"static": crashNetwork, "ospf": crashOSPF, "vxswitch": crashVxSwitch} {
		t.Run(name, func(t *testing.T) {
			if name == "ospf" && !haveFRR() {
				t.Skip("FRR is not installed")
			}
			t.Parallel()
			killEverywhere(t, network)
		})
	}
}

// Likewise, but once before each kind of message and of step, in one network.
func TestAgentKilledAtEachKindOfMessage(t *testing.T) {
	t.Parallel()
	c := newCrasher(t, crashNetwork, false)
	c.strikeAll(failure{name: "a kill", what: verdict{kill: true}}, c.firsts(nil))
}

// kindOf is a call without its names, such as "netlink new link" or "mkdir".
func kindOf(key string) string {
	words := strings.Fields(key)
	if words[0] != "netlink" {
		return words[0]
	}
	return strings.Join(words[:min(3, len(words))], " ")
}

// firsts are the numbers of the first call of each kind, by phase, of those that
// count.
func (c *crasher) firsts(counts func(syscallInfo) bool) (at [2][]int) {
	c.t.Helper()
	for i := range phases {
		f := &fuse{at: -1, counts: counts}
		c.strike(i, f, "nothing")
		seen := make(map[string]bool)
		for n, key := range f.trace {
			if kind := kindOf(key); !seen[kind] {
				seen[kind] = true
				at[i] = append(at[i], n)
			}
		}
	}
	return at
}

// strikeAll strikes at so many calls of either phase.
func (c *crasher) strikeAll(way failure, at [2][]int) {
	c.t.Helper()
	var hits []string
	for n := range max(len(at[0]), len(at[1])) {
		for i := range phases {
			f := &fuse{at: -1, what: way.what, answer: way.answer, counts: way.countsAny()}
			if n < len(at[i]) {
				f.at = at[i][n]
			}
			c.strike(i, f, way.name)
			if f.at >= 0 && f.hit == "" {
				c.t.Logf("%s at call %d of the %s: it did not come", way.name, f.at, phases[i])
			} else if f.hit != "" {
				hits = append(hits, f.hit)
			}
		}
		if c.t.Failed() {
			c.t.FailNow()
		}
	}
	c.t.Logf("%s: at %q", way.name, hits)
	if len(hits) == 0 {
		c.t.Errorf("%s: at no call", way.name)
	}
}

// phases of a crasher's network.
var phases = [2]string{"deploy", "release"}

// strike does a phase with a fuse in the agent, and looks at what came of it.
func (c *crasher) strike(phase int, f *fuse, what string) {
	c.t.Helper()
	after := func() string { return fmt.Sprintf("%s at call %d of the %s (%s)", what, f.at, phases[phase], f.hit) }
	if phase == 0 {
		c.during(f, func() { c.admit(c.request) }, c.ready)
		c.checkBuilt(after())
	} else {
		c.during(f, c.release, c.gone)
		c.checkGone(after())
	}
	if c.t.Failed() {
		c.t.Log("stopped after " + after())
	}
}

func killEverywhere(t *testing.T, network string) {
	c := newCrasher(t, network, false)
	stride := stride()
	var hits [2][]string
	var whole [2][]string
	began := time.Now()
	for n := 0; whole[0] == nil || whole[1] == nil; n += stride {
		for i := range phases {
			f := &fuse{at: n, what: verdict{kill: true}}
			c.strike(i, f, "a kill")
			if f.hit == "" {
				whole[i] = f.trace
			} else {
				hits[i] = append(hits[i], f.hit)
			}
			if t.Failed() {
				t.FailNow()
			}
		}
	}
	for i, phase := range phases {
		t.Logf("%s: killed at %d of %d calls, %d of them netlink messages", phase, len(hits[i]), len(whole[i]), countPrefix(hits[i], "netlink"))
		if missed := missing(whole[i], hits[i]); stride == 1 && len(missed) > 0 {
			t.Errorf("never killed at these calls of the %s: %q", phase, missed)
		}
	}
	t.Logf("%d kills, %s each", len(hits[0])+len(hits[1]), (time.Since(began) / time.Duration(len(hits[0])+len(hits[1]))).Round(time.Millisecond))
}

func countPrefix(list []string, prefix string) int {
	n := 0
	for _, s := range list {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

// missing lists what is in whole more often than in part.
func missing(whole, part []string) []string {
	rest := slices.Clone(part)
	return slices.DeleteFunc(slices.Clone(whole), func(s string) bool {
		i := slices.Index(rest, s)
		if i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		}
		return i >= 0
	})
}

// failure is a way in which calls fail.
type failure struct {
	name   string
	what   verdict
	answer bool
	files  bool // of steps on files, mounts and control groups; else of messages
}

// countsAny is which calls a fuse counts: a kill comes before any.
func (f failure) countsAny() func(syscallInfo) bool {
	if f.what.kill {
		return nil
	}
	return f.counts
}

func (f failure) counts(s syscallInfo) bool { return f.files != (s.name == "netlink") }

var failures = []failure{
	{name: "request ENOBUFS", what: verdict{fail: unix.ENOBUFS}},
	{name: "answer ENOBUFS", what: verdict{fail: unix.ENOBUFS}, answer: true},
	{name: "answer EBUSY", what: verdict{fail: unix.EBUSY}, answer: true},
	{name: "answer EINTR", what: verdict{fail: unix.EINTR}, answer: true},
	{name: "file ENOSPC", what: verdict{fail: unix.ENOSPC}, files: true},
}

// Every single message of a deploy and of a release fails once: not done, or
// done but its answer lost; and every step on files. One agent lives through
// all of it, and always gets there.
func TestSoakEveryMessageFails(t *testing.T) {
	t.Parallel()
	c := newCrasher(t, crashNetwork, true)
	defer c.oneAgent()()
	stride := stride()
	for k, way := range failures {
		began := time.Now()
		var count [2]int
		for n, more := k*stride/len(failures), true; more; n += stride {
			more = false
			for i := range phases {
				f := &fuse{at: n, what: way.what, answer: way.answer, counts: way.counts}
				c.strike(i, f, way.name)
				if f.hit != "" {
					more = true
					count[i]++
				}
				if t.Failed() {
					t.FailNow()
				}
			}
		}
		t.Logf("%s: at %d calls of the deploy, %d of the release, in %s", way.name, count[0], count[1], time.Since(began).Round(time.Millisecond))
	}
}

// Likewise, but each kind of message and of step fails once, in some way, and in
// each way some kind does.
func TestEachKindOfMessageFails(t *testing.T) {
	t.Parallel()
	c := newCrasher(t, crashNetwork, true)
	defer c.oneAgent()()
	messages, files := c.firsts(failures[0].counts), c.firsts(failures[len(failures)-1].counts)
	ways := len(failures) - 1 // of messages
	for n, way := range failures[:ways] {
		var mine [2][]int
		for i, list := range messages {
			for at := n; at < len(list); at += ways {
				mine[i] = append(mine[i], list[at])
			}
		}
		c.strikeAll(way, mine)
	}
	c.strikeAll(failures[ways], files)
}

// oneAgent sees to it that one agent lives through all, and leaves no files open.
func (c *crasher) oneAgent() (check func()) {
	agent := c.get(agentOf("h1")).pid
	open := func() int { return len(matches(fmt.Sprintf("/proc/%d/fd/*", agent))) }
	descriptors := open()
	return func() {
		if c.get(agentOf("h1")).pid != agent {
			c.t.Error("it was not one agent that lived through all of it")
		}
		if now := open(); now > descriptors+5 {
			c.t.Errorf("the agent has %d files open, and had %d", now, descriptors)
		}
	}
}

// stride between the calls that are tried: all with SUBLET_EVERY set, which
// takes some forty minutes, else every sixteenth, so that CI ends in time.
func stride() int {
	if os.Getenv("SUBLET_EVERY") != "" {
		return 1
	}
	return 16
}
