package test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	product "sublet/lab"
	"sublet/plan"
	"sublet/vnet"
)

// queuesOfLine are those of each port of lineWithQueues, by the names of its links.
const queuesOfLine = `
  - {name: s1, openflow: {%s, datapath_id: "a1"}, ports: {h1-s1: 1, s1-s2: 2}, entries: 50, queues: {h1-s1: {1: 10Mbit, 2: 10Mbit}, s1-s2: {1: 10Mbit, 7: 10Mbit}}}
  - {name: s2, openflow: {%s, datapath_id: "a2"}, ports: {s2-h2: 1, s1-s2: 2}, entries: 50, queues: {s2-h2: {1: 10Mbit, 2: 10Mbit, 3: 15Mbit}, s1-s2: {1: 10Mbit, 2: 10Mbit}}}`

// setQueues sets up queues of 10 Mbit/s at a port of Open vSwitch, as its operator does.
func (s *openVSwitch) setQueues(port string, numbers ...int) {
	s.l.t.Helper()
	rate, sum := fmt.Sprint(int64(plan.Outer(10*vnet.Mbit))), fmt.Sprint(int64(plan.Outer(50*vnet.Mbit)))
	argv := []string{"--db=unix:" + s.dir + "/db.sock", "--timeout=60", "set", "port", port, "qos=@all", "--", "--id=@all", "create", "qos", "type=linux-htb", "other-config:max-rate=" + sum}
	for _, n := range numbers {
		argv = append(argv, fmt.Sprintf("queues:%d=@q%d", n, n))
	}
	for _, n := range numbers {
		argv = append(argv, "--", fmt.Sprintf("--id=@q%d", n), "create", "queue", "other-config:min-rate="+rate, "other-config:max-rate="+rate)
	}
	s.command("ovs-vsctl", argv...)
}

// queued wants so many entries for tunnels, each by a queue of its own, and no meters.
func (s *openVSwitch) queued(entries int) error {
	flows, meters := s.ofctl("dump-flows"), s.ofctl("dump-meters")
	by := make(map[string]bool)
	for line := range strings.Lines(flows) {
		if _, does, ok := strings.Cut(line, "actions=set_queue:"); ok && strings.Contains(line, "tp_dst=4789") {
			by[does] = true
		}
	}
	if len(by) != entries || strings.Count(flows, "tp_dst=4789") != entries || strings.Contains(meters, "type=drop") || !strings.Contains(flows, "actions=NORMAL") {
		return fmt.Errorf("%s has not %d entries with a queue each:\n%s%s", s.name, entries, flows, meters)
	}
	return nil
}

// Where switches have queues that their operator set up, a link over them takes one in
// each direction: booked by rate, verified, left by another server, put right when another hand alters entries,
// and said to be missing when the operator takes queues away.
//
//	h1: a - s1 (Open vSwitch) - s2 (Open vSwitch) - h2: b
func TestLeaseTakesQueuesOfOpenVSwitch(t *testing.T) {
	t.Parallel()
	l, s1, s2 := lineOfSwitches(t, queuesOfLine)
	s1.setQueues("to-h1", 1, 2)
	s1.setQueues("to-s2", 1, 7)
	s2.setQueues("to-h2", 1, 2, 3)
	s2.setQueues("to-s1", 1, 2)
	both := func(entries int) func() error {
		return func() error { return errors.Join(s1.queued(entries), s2.queued(entries)) }
	}
	l.up(fmt.Sprintf(overSwitches, "first"))
	if err := both(2)(); err != nil {
		t.Fatal(err) // it runs only when they are there
	}
	l.up(fmt.Sprintf(overSwitches, "second"))
	if err := both(4)(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ rate, why string }{
		{"10Mbit", "switch s1 has 0 of 2 queues of 10Mbit at link h1-s1 free in this window, and the network needs 1"},
		{"12Mbit", "switch s1 has queues of 10Mbit at link h1-s1, and none for the max of a link of the network: state a smaller one"},
	} {
		r := l.sublet("up", l.file("request.yaml", strings.Replace(fmt.Sprintf(overSwitches, "third"), "10Mbit", c.rate, 1)))
		if r.code != 3 || !strings.Contains(r.err, c.why) {
			t.Errorf("a third network of %s: exit code %d\n%s", c.rate, r.code, r.err)
		}
	}
	if out := l.must("calendar", "queues:s1/s1-s2/10Mbit"); !strings.Contains(out, "up to 2 of 2") {
		t.Errorf("the calendar says\n%s", out)
	}
	before := append(s1.cookies(), s2.cookies()...)
	l.supervised().restart(server, 0)
	for range 20 { // while it reads back, and settles
		if now := append(s1.cookies(), s2.cookies()...); !slices.Equal(now, before) {
			t.Errorf("under another server there are\n%s instead of\n%s", now, before)
		}
		time.Sleep(100 * time.Millisecond)
	}
	s1.ofctl("del-flows", "udp")
	s2.ofctl("mod-flows", "udp,actions=drop")
	eventually(t, time.Minute, both(4))
	s1.restart()
	eventually(t, time.Minute, both(4))
	eventually(t, time.Minute, func() error { return l.crosses("second/a", "b") })
	l.must("down", "second")
	eventually(t, time.Minute, both(2))
	s1.setQueues("to-s2", 5)
	l.says("first", "the switch has no queues [1 7] at port 2, as the substrate states: set them up there")
	s1.setQueues("to-s2", 1, 7)
	eventually(t, time.Minute, both(2))
	l.must("wait", "first")
	l.must("down", "first")
	eventually(t, time.Minute, both(0))
}

// says waits until the state of a network has some words.
func (l *lab) says(network, words string) {
	l.t.Helper()
	eventually(l.t, time.Minute, func() error {
		if out := l.must("leases", network); !strings.Contains(out, words) {
			return fmt.Errorf("the lease says\n%s", out)
		}
		return nil
	})
}

// A queue holds a link's rate beside traffic that belongs to no lease, at switches of
// Sublet's own on both datapaths. (Open vSwitch sends by no queue in user space.)
func TestQueuesOfSwitchesKeepRates(t *testing.T) {
	needOpenVSwitch(t) // ethtool comes with it
	for _, datapath := range []string{"kernel", "process"} {
		t.Run(datapath, func(t *testing.T) {
			one, two := freePort(t), freePort(t)
			l := labOfLine(t, queuesOfLine, fmt.Sprintf("listen: %q", one), fmt.Sprintf("listen: %q", two))
			l.ownSwitch("s1", "a1", one, datapath, "to-h1", "to-s2")
			l.ownSwitch("s2", "a2", two, datapath, "to-h2", "to-s1")
			l.directLine()
			l.up(fmt.Sprintf(overSwitches, "first"))
			l.unleased("h1", product.PortAddress(2, 1).String()+":9")
			l.checked("first", broken)
			l.must("down", "first")
		})
	}
}

// ownSwitch replaces a switch of the lab by one of Sublet's own, with queues 1, 2, 3 and 7
// of 10 Mbit/s at each port, as its operator sets them up.
func (l *lab) ownSwitch(name, id, controller, datapath string, ports ...string) {
	l.t.Helper()
	rate, sum := fmt.Sprint(int64(plan.Outer(10*vnet.Mbit))), fmt.Sprint(int64(plan.Outer(50*vnet.Mbit)))
	run := func(argv ...string) {
		if out, err := exec.Command("nsenter", append([]string{"--net=" + l.host(name), "--"}, argv...)...).CombinedOutput(); err != nil {
			l.t.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
	run("sysctl", "-qw", "net.ipv4.ip_forward=0")
	for _, port := range ports {
		run("ip", "address", "flush", "dev", port)
		run("ethtool", "-K", port, "tx", "off")
		run("tc", "qdisc", "replace", "dev", port, "root", "handle", "1:", "htb", "default", "1")
		run("tc", "class", "add", "dev", port, "parent", "1:", "classid", "1:fffe", "htb", "rate", sum, "ceil", sum)
		run("tc", "class", "add", "dev", port, "parent", "1:fffe", "classid", "1:1", "htb", "rate", "1mbit", "ceil", sum)
		for _, class := range []string{"2", "3", "4", "8"} {
			run("tc", "class", "add", "dev", port, "parent", "1:fffe", "classid", "1:"+class, "htb", "rate", rate, "ceil", rate)
		}
	}
	cmd := exec.Command(program, "openflow", "run", "--quiet", "--controller", "tcp:"+controller, "--dpid", id, "--ports", strings.Join(ports, ","),
		"--ports-in", l.host(name), "--datapath", datapath, "--socket", filepath.Join(filepath.Dir(l.run), name+".mgmt"))
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}
