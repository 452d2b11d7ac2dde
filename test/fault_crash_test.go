package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
	"sublet/vnet/file"
)

// crashNetwork has on h1 everything an agent can make: nodes, a router, a link
// inside the host, a tunnel.
//
//	h1:  a ---near--- r           h2
//	                  |
//	                  +----far---- c
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

// crashVxSwitch has a hosting switch, which is a process of its own.
//
//	h1:  a ---near--- s           h2
//	                  |
//	                  +----far---- c
const crashVxSwitch = `network: crash
tenant: root
nodes: [{name: a, host: h1, memory: 64MiB}, {name: c, host: h2}]
switches: [{name: s, kind: vxswitch, host: h1, cpu: 0.5}]
links:
  - {name: near, ends: [a, s], rate: 50Mbit}
  - {name: far, ends: [s, c], min: 10Mbit, max: 100Mbit}
`

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
	eventually(c.t, 10*time.Second, func() error {
		if diff := difference(c.before, c.machine("h1", "h2")); diff != "" {
			return fmt.Errorf("after %s the machine is not what it was:\n%s", after, diff)
		}
		return nil
	})
}
