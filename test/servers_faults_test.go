package test

import (
	"bytes"
	"crypto/x509/pkix"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/internal/stall"
)

// hostsOfFaults are one with an agent, one for writes that tell whether a leader
// answers, and one for the leases of a history.
const hostsOfFaults = `hosts:
  - {name: NAME, cpu: 2, memory: 1GiB}
  - {name: m2, cpu: 64, memory: 64GiB}
  - {name: m3, cpu: 64, memory: 64GiB}
`

// underFaults is a network whose traffic runs while servers are lost.
const underFaults = `network: faults
tenant: bin
nodes: [{name: a, host: NAME}, {name: b, host: NAME}]
links: [{ends: [a, b], rate: 20Mbit}]
`

// diskOfFaults is small enough to be filled.
const diskOfFaults = "size=192m"

// fault is what becomes of a server; mend undoes it, and leaves a server that answers
// or will.
type fault struct {
	name     string
	majority bool // is there all the while
	do       func(c *control, m *member) (mend func())
}

var faults = []fault{
	{"killed", true, (*control).killed},
	{"frozen", true, (*control).frozen},
	{"cut off", true, (*control).cutOff},
	{"cannot send to one", true, (*control).oneWay},
	{"disk full", true, (*control).diskFull},
	{"disk slow", true, (*control).diskSlow},
	{"clock wrong", true, (*control).clockWrong},
	{"two killed", false, (*control).twoKilled},
}

// soakMembers is how long faults go on unless SUBLET_SOAK says longer.
const soakMembers = 40 * time.Second

// Whatever becomes of servers with a store of their own, at random and one after
// another, the history stays linearizable, a running network loses no packet, and at
// the end the control plane answers.
func TestSoakMembersFaults(t *testing.T) {
	if !secluded(t) {
		return
	}
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("slow disks need strace")
	}
	span := soakMembers
	if d, err := time.ParseDuration(os.Getenv("SUBLET_SOAK")); err == nil {
		span = d
	}
	name := fmt.Sprintf("f%d", os.Getpid()) // groups of processes are below it
	named := func(text string) string { return strings.ReplaceAll(text, "NAME", name) }
	c := newControlOn(t, &control{t: t, disk: diskOfFaults}, 3, named(hostsOfFaults))
	t.Cleanup(func() { removeGroups(name) })
	host := c.agent(name)
	c.must(t, c.addresses(), "up", host.file("n.yaml", named(underFaults)))
	c.must(t, c.addresses(), "exec", "bin/faults/a", "-d", "--", "ping", "-q", "-i", "0.1", "-c", fmt.Sprint(int(10*span.Seconds())), "b")
	history := c.recordOn(4, "m3")
	took := map[string][]time.Duration{}
	many := 0
	for until := time.Now().Add(span); time.Now().Before(until); many++ {
		f := faults[many%len(faults)]
		took[f.name] = append(took[f.name], c.suffer(f, many))
	}
	t.Logf("%d faults; without an answer after a fault of the leader, processors that were missing taken off:", many)
	for _, f := range faults {
		t.Logf("%-20s %s", f.name, spreadOf(took[f.name]))
	}
	history.check()
	eventually(t, time.Minute, func() error {
		r := c.operator(t, c.addresses(), "logs", "bin/faults/a")
		if !strings.Contains(r.out, " packets transmitted") {
			return fmt.Errorf("the ping goes on: %s%s", r.out, r.err)
		}
		if !strings.Contains(r.out, " 0% packet loss") {
			t.Errorf("the running network: %s", r.out)
		}
		return nil
	})
	for _, m := range c.members {
		if text := m.log.String(); strings.Contains(text, "defect") || strings.Contains(text, "DATA RACE") {
			t.Errorf("%s says:\n%s", m.name, text)
		}
	}
	c.must(t, c.addresses(), "down", "bin/faults")
	eventually(t, time.Minute, func() error {
		if left, _ := os.ReadDir(filepath.Join(host.run, "netns", name)); len(left) > 0 {
			return fmt.Errorf("left are %v", left)
		}
		return nil
	})
}

// suffer has the leader suffer a fault, or any server, and mends it; it says how long no
// server answered, less what processors were short.
func (c *control) suffer(f fault, n int) time.Duration {
	c.t.Helper()
	led := c.leader()
	m := led
	if n/len(faults)%4 == 3 {
		m = c.members[rand.IntN(len(c.members))]
	}
	c.suffering = fmt.Sprintf("fault %d, %s: %s", n, m.name, f.name)
	watch := stall.Start()
	mend := f.do(c, m)
	took := unmeasured
	if f.majority {
		took = c.silence(n, func() {})
	}
	starved := watch.Stop().Lost()
	time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
	mend()
	if m != led || took == unmeasured {
		return unmeasured
	}
	return max(0, took-starved)
}

// unmeasured is for faults of others than the leader, or of the majority.
const unmeasured = time.Duration(-1)

func spreadOf(list []time.Duration) string {
	list = slices.DeleteFunc(slices.Clone(list), func(d time.Duration) bool { return d == unmeasured })
	if len(list) == 0 {
		return "not measured"
	}
	slices.Sort(list)
	ms := func(q float64) int64 { return list[int(q*float64(len(list)-1))].Milliseconds() }
	return fmt.Sprintf("%4d: median %5d ms, 90 %% %5d ms, 99 %% %5d ms, most %5d ms", len(list), ms(0.5), ms(0.9), ms(0.99), ms(1))
}

func (c *control) killed(m *member) (mend func()) {
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
	return func() { c.start(m) }
}

func (c *control) frozen(m *member) (mend func()) {
	_ = m.cmd.Process.Signal(syscall.SIGSTOP)
	return func() { _ = m.cmd.Process.Signal(syscall.SIGCONT) }
}

func (c *control) cutOff(m *member) (mend func()) {
	c.ip("link", "set", "dev", m.wire, "down")
	return func() { c.ip("link", "set", "dev", m.wire, "up") }
}

// oneWay: another server hears no more of this one, which hears all.
func (c *control) oneWay(m *member) (mend func()) {
	other := c.members[(slices.Index(c.members, m)+1)%len(c.members)]
	address, _, err := net.SplitHostPort(other.address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.ip("-n", m.ns, "route", "add", "blackhole", address+"/32")
	return func() { c.ip("-n", m.ns, "route", "delete", "blackhole", address+"/32") }
}

// diskFull fills a server's disk, also what the server gives back.
func (c *control) diskFull(m *member) (mend func()) {
	path := filepath.Join(m.data, "hog")
	stop := make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			fill(path)
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() {
		if rand.IntN(2) == 0 { // long enough for the server to notice
			time.Sleep(1500 * time.Millisecond)
		}
		close(stop)
		<-over
		if err := os.Remove(path); err != nil {
			c.t.Error(err)
		}
		time.Sleep(200 * time.Millisecond)
		c.again(m)
	}
}

// again waits until a server answers, and starts it if it has ended.
func (c *control) again(m *member) {
	c.t.Helper()
	client := c.client(m.address)
	eventually(c.t, time.Minute, func() error {
		if !alive(m) {
			_ = m.cmd.Wait()
			c.start(m)
		}
		_, err := client.Servers(c.t.Context())
		return err
	})
}

// fill appends to a file until the disk is full.
func fill(path string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	for part := make([]byte, 1<<20); len(part) > 0; {
		if _, err := f.Write(part); err != nil {
			part = part[:len(part)/4]
		}
	}
}

// alive says that a server's process has not ended.
func alive(m *member) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.cmd.Process.Pid))
	at := bytes.LastIndexByte(text, ')')
	return err == nil && at > 0 && len(text) > at+2 && text[at+2] != 'Z'
}

// diskSlow makes whatever a server writes take 0.7 s to be on its disk.
func (c *control) diskSlow(m *member) (mend func()) {
	cmd := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:delay_enter=700000", "-p", fmt.Sprint(m.cmd.Process.Pid))
	if err := cmd.Start(); err != nil { // it ends with the server
		c.t.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
}

// clockWrong sets a server's clock an hour ahead or back, and waits until it knows.
func (c *control) clockWrong(m *member) (mend func()) {
	const says = "another server had better lead"
	before := strings.Count(m.log.String(), says)
	ahead := time.Hour
	if rand.IntN(2) == 0 {
		ahead = -ahead
	}
	c.setClock(m, ahead)
	eventually(c.t, 20*time.Second, func() error {
		if strings.Count(m.log.String(), says) == before {
			return fmt.Errorf("%s takes its clock to be right", m.name)
		}
		return nil
	})
	return func() { c.setClock(m, 0) }
}

// twoKilled takes the majority away.
func (c *control) twoKilled(m *member) (mend func()) {
	other := c.members[(slices.Index(c.members, m)+1)%len(c.members)]
	for _, one := range []*member{m, other} {
		_ = one.cmd.Process.Kill()
		_ = one.cmd.Wait()
	}
	return func() {
		c.launch(m)
		c.start(other)
		c.leader()
	}
}

// agent runs the agent of a host in the test's namespace.
func (c *control) agent(host string) *lab {
	c.t.Helper()
	t := c.t.(*testing.T)
	c.ca.signAs(host, pkix.Name{CommonName: host}, false, net.ParseIP(c.host(1)))
	_, port, err := net.SplitHostPort(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	path := func(file string) string { return filepath.Join(c.dir, file) }
	l := &lab{t: t, run: path(host)}
	l.background("--cert", path(host+".pem"), "--key", path(host+".key"), "--ca", path("ca.pem"),
		"agent", "--host", host, "--data", path("agent"), "--server", strings.Join(c.addresses(), ","), "--listen", c.host(1)+":"+port, "--calibrate-after", "0s")
	return l
}

// removeGroups takes away what a host without an agent has left of a test that failed.
func removeGroups(host string) {
	tops, _ := filepath.Glob("/sys/fs/cgroup/*/sublet/" + host)
	for _, top := range tops {
		var groups []string
		_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				groups = append(groups, path)
			}
			return nil
		})
		for _, group := range slices.Backward(groups) { // inner ones first
			text, _ := os.ReadFile(group + "/cgroup.procs")
			for _, pid := range strings.Fields(string(text)) {
				if n, err := strconv.Atoi(pid); err == nil {
					_ = syscall.Kill(n, syscall.SIGKILL)
				}
			}
			for until := time.Now().Add(time.Second); os.Remove(group) != nil && time.Now().Before(until); {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
}

// mountDisk gives a server a disk of its own.
func (c *control) mountDisk(m *member) {
	c.t.Helper()
	if err := os.MkdirAll(m.data, 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", m.data, "tmpfs", 0, c.disk+",mode=0700"); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = unix.Unmount(m.data, unix.MNT_DETACH) })
}
