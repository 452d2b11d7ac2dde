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
func TestAgentKilledAtEveryMessage(t *testing.T) {
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

func killEverywhere(t *testing.T, network string) {
	c := newCrasher(t, network, false)
	stride := stride()
	var hits [2][]string
	var whole [2][]string
	began := time.Now()
	for n := 0; whole[0] == nil || whole[1] == nil; n += stride {
		for i, phase := range []string{"deploy", "release"} {
			f := &fuse{at: n, what: verdict{kill: true}}
			if i == 0 {
				c.during(f, func() { c.admit(c.request) }, c.ready)
				c.checkBuilt(fmt.Sprintf("a kill at call %d of the deploy (%s)", n, f.hit))
			} else {
				c.during(f, c.release, c.gone)
				c.checkGone(fmt.Sprintf("a kill at call %d of the release (%s)", n, f.hit))
			}
			if f.hit == "" {
				whole[i] = f.trace
			} else {
				hits[i] = append(hits[i], f.hit)
			}
			if t.Failed() {
				t.Fatalf("stopped at call %d of the %s", n, phase)
			}
		}
	}
	for i, phase := range []string{"deploy", "release"} {
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
func TestEveryMessageFails(t *testing.T) {
	t.Parallel()
	c := newCrasher(t, crashNetwork, true)
	stride := stride()
	agent := c.get(agentOf("h1")).pid
	descriptors := len(matches(fmt.Sprintf("/proc/%d/fd/*", agent)))
	for _, way := range failures {
		began := time.Now()
		var count [2]int
		for n, more := 0, true; more; n += stride {
			more = false
			for i, phase := range []string{"deploy", "release"} {
				f := &fuse{at: n, what: way.what, answer: way.answer, counts: way.counts}
				if i == 0 {
					c.during(f, func() { c.admit(c.request) }, c.ready)
					c.checkBuilt(fmt.Sprintf("%s at %d of the deploy (%s)", way.name, n, f.hit))
				} else {
					c.during(f, c.release, c.gone)
					c.checkGone(fmt.Sprintf("%s at %d of the release (%s)", way.name, n, f.hit))
				}
				if f.hit != "" {
					more = true
					count[i]++
				}
				if t.Failed() {
					t.Fatalf("stopped at %s %d of the %s: %s", way.name, n, phase, f.hit)
				}
			}
		}
		t.Logf("%s: at %d calls of the deploy, %d of the release, in %s", way.name, count[0], count[1], time.Since(began).Round(time.Millisecond))
	}
	if c.get(agentOf("h1")).pid != agent {
		t.Error("it was not one agent that lived through all of it")
	}
	if now := len(matches(fmt.Sprintf("/proc/%d/fd/*", agent))); now > descriptors+5 {
		t.Errorf("the agent has %d files open, and had %d", now, descriptors)
	}
}

// stride between the calls that are tried: all with SUBLET_EVERY set, which
// takes some twenty minutes, else every fifth, so that CI ends in time.
func stride() int {
	switch {
	case os.Getenv("SUBLET_EVERY") != "":
		return 1
	case testing.Short():
		return 17
	}
	return 5
}
