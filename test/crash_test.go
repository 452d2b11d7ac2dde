package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/vnet"
	"sublet/vnet/file"
)

// crashNetwork has on h1 everything an agent can make: nodes, a router, a link
// inside the host, a tunnel.
const crashNetwork = `network: crash
tenant: root
nodes: [{name: a, host: h1, cpu: 0.5, memory: 64MiB}, {name: c, host: h2}]
routers: [{name: r, host: h1}]
links:
  - {name: near, ends: [a, r], rate: 50Mbit}
  - {name: far, ends: [r, c], min: 10Mbit, max: 100Mbit}
`

// crashOSPF has FRR in the router, too.
var crashOSPF = strings.Replace(crashNetwork, "{name: r, host: h1}", "{name: r, host: h1, protocol: ospf}", 1)

// neighbour keeps in use what the hosts of a lab share, their control group, so
// that h1 has the same to do every time.
const neighbour = `network: neighbour
tenant: root
nodes: [{name: a, host: h2}]
`

func parseRequest(t *testing.T, text string) vnet.Request {
	t.Helper()
	request, err := file.ParseRequest("request.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// fuse counts the calls of a reconciliation, from the moment on when the agent
// writes the new plan down, and does something at the one numbered at.
type fuse struct {
	at     int
	what   verdict
	counts func(syscallInfo) bool // which calls; nil: all
	answer bool                   // let the message through, and do it to reading its answer

	armed bool
	asked bool   // waiting for the answer on
	fd    uint64 // this socket
	count int
	trace []string
	hit   string // the call it happened at
}

// decide is for a trap. Messages sent beside the reconciliation are not
// counted: watching gives namespaces numbers, and children live their own lives.
func (f *fuse) decide(s syscallInfo) verdict {
	if s.name == "answer" {
		if f.asked && s.fd == f.fd && !s.child {
			f.asked = false
			return f.what
		}
		return pass
	}
	if s.name == "rename" && strings.Contains(s.text, "plan-") {
		f.armed = true
	}
	beside := s.child || strings.HasPrefix(s.text, "new nsid")
	if !f.armed || beside || f.counts != nil && !f.counts(s) {
		return pass
	}
	f.trace = append(f.trace, keyOf(s))
	f.count++
	if f.count != f.at+1 || f.hit != "" {
		return pass
	}
	f.hit = keyOf(s)
	if f.answer {
		f.asked, f.fd = true, s.fd
		return pass
	}
	return f.what
}

// keyOf says what a call is, without the numbers that change from build to build.
func keyOf(s syscallInfo) string {
	text, _, _ := strings.Cut(s.text, "#")
	return s.name + " " + text
}

// crasher runs one network up and down, with an agent that is killed.
type crasher struct {
	*supervisor
	agent   *trap
	request vnet.Request
	id      vnet.LeaseID
	before  []string // the machine without the network
	built   []string // host h1 with it
}

func newCrasher(t *testing.T, network string, answers bool) *crasher {
	c := &crasher{supervisor: newSupervisor(t, "demo"), request: parseRequest(t, network)}
	c.id = idOf(c.request)
	c.up(neighbour)
	c.settled()
	c.kill(agentOf("h1"))
	c.agent = c.startTrapped(agentOf("h1"), answers)
	c.asPlanned("h1", "h2")
	c.before = c.machine("h1", "h2")
	c.during(&fuse{at: -1}, func() { c.admit(c.request) }, c.ready)
	c.built = c.lab.built("h1")
	c.during(&fuse{at: -1}, c.release, c.gone)
	c.checkGone("a first release")
	return c
}

func (c *crasher) release() {
	c.t.Helper()
	if _, err := c.api.Release(c.t.Context(), c.id); err != nil {
		c.t.Fatalf("release: %v", err)
	}
}

// during begins a change with a fuse in the agent, starts the agent again if
// that kills it, and waits until the change is complete.
func (c *crasher) during(f *fuse, begin func(), complete func(vnet.LeaseID)) {
	c.t.Helper()
	c.agent.on(f.decide)
	begin()
	done := make(chan struct{})
	go func() { defer close(done); complete(c.id) }()
	select {
	case <-c.agent.ended:
	case <-done:
	}
	c.agent.on(nil) // from here on the fuse is ours
	if f.hit != "" && f.what.kill {
		<-c.agent.ended
		c.agent = c.startTrapped(agentOf("h1"), false)
	}
	<-done
}

func (c *crasher) checkBuilt(after string) {
	c.t.Helper()
	c.asPlanned("h1", "h2")
	if diff := difference(c.built, c.lab.built("h1")); diff != "" {
		c.t.Errorf("after %s the network is not built as usual:\n%s", after, diff)
	}
	cmd := c.nodeCommand("h1", c.id, "a", "ping", "-c", "1", "-W", "2", "-q", c.addressOf("h1", c.id, "c"))
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Errorf("after %s a does not reach c: %v\n%s", after, err, out)
	}
}

// checkGone compares with the machine before. Processes and files of what was
// just taken away may need a moment.
func (c *crasher) checkGone(after string) {
	c.t.Helper()
	var diff string
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if diff = difference(c.before, c.machine("h1", "h2")); diff == "" {
			return
		}
	}
	c.t.Errorf("after %s the machine is not what it was:\n%s", after, diff)
}

// The agent is killed right before every single message to the kernel of a
// deploy and of a release, and every step on files, mounts and control groups:
// all of them, one after the other. Started again it always gets there.
func TestAgentKilledAtEveryMessage(t *testing.T) {
	t.Parallel()
	for name, network := range map[string]string{"static": crashNetwork, "ospf": crashOSPF} {
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
	stride := 1
	if testing.Short() {
		stride = 17
	}
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
	stride := 1
	if testing.Short() {
		stride = 17
	}
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
