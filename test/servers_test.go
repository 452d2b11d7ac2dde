package test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"sublet/internal/stall"
	"sublet/lease/api"
)

// takeover is how long a control plane of several servers may be without one that
// answers.
const takeover = 3 * time.Second

const twoHosts = "hosts:\n  - {name: m1, cpu: 64, memory: 64GiB}\n  - {name: m2, cpu: 64, memory: 64GiB}\n"

// member is one of several servers, a process in a network namespace of its own.
type member struct {
	name, address, ns, wire string
	store                   string // where its member of the store answers
	run, data               string
	cmd                     *exec.Cmd
	log                     *words
}

// words are what a process says, and are read while it says more.
type words struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// control is a control plane of several servers, on one etcd or with a member of the
// store each:
//
//	test, etcd --- bridge --- s1 (namespace)
//	                      --- s2
//	                      --- s3
//
// Test and etcd are in a namespace of their own, too.
type control struct {
	t          testing.TB
	dir        string
	ca         *authority
	external   bool   // etcd; else each server has a member of the store
	secure     bool   // etcd, over TLS
	etcd       string // its port
	etcdSecure *secureEtcd
	disk       string // options of the file system that each server has for its data; "": none of its own
	members    []*member
	made       int
	suffering  string // what became of whom last
	subnet     int
	name       string // begins those of namespaces and devices
}

// controls counts those of this process: the kernel takes a namespace's devices away
// a moment after it is deleted.
var controls atomic.Int32

// inside is set in the environment of a process that secluded started.
const inside = "SUBLET_TEST_INSIDE"

// secluded runs a test or benchmark again, as a process with a network namespace of its
// own; it is true in there.
func secluded(t testing.TB) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces takes root")
	}
	which := []string{"-test.run=^" + t.Name() + "$"}
	if _, ok := t.(*testing.B); ok {
		which = []string{"-test.run=-", "-test.bench=^" + t.Name() + "$", "-test.benchtime=" + flag.Lookup("test.benchtime").Value.String()}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(which, "-test.v", "-test.timeout=0")...)
	cmd.Env = append(os.Environ(), inside+"=1", "SUBLET_BIN="+program)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // whose end would kill it
	out, err := cmd.CombinedOutput()
	runtime.UnlockOSThread()
	if _, ok := t.(*testing.B); ok {
		fmt.Printf("%s", out) // of which Logf would cut off
	} else {
		t.Logf("%s", out)
	}
	if err != nil {
		t.Error(err)
	}
	return false
}

// newControl starts an etcd and servers on it.
func newControl(t testing.TB, servers int, substrate string) *control {
	t.Helper()
	return newControlOn(t, &control{t: t, external: true}, servers, substrate)
}

// newOwnControl starts servers with a member of the store each.
func newOwnControl(t testing.TB, servers int, substrate string) *control {
	t.Helper()
	return newControlOn(t, &control{t: t}, servers, substrate)
}

func newControlOn(t testing.TB, c *control, servers int, substrate string) *control {
	t.Helper()
	if os.Getenv(inside) == "" {
		t.Fatal("servers have no devices on the machine itself: call secluded first")
	}
	dir := filepath.Dir(shortDir(t))
	n := int(controls.Add(1))
	c.dir, c.ca, c.subnet, c.name = dir, newAuthority(t, dir), (os.Getpid()+61*n)%250, fmt.Sprintf("sv%d%c", os.Getpid()%100000, 'a'+n%26)
	if c.external {
		c.etcd = startEtcd(t, filepath.Join(dir, "etcd"))
	}
	if err := os.WriteFile(filepath.Join(dir, "substrate.yaml"), []byte(substrate), 0o600); err != nil {
		t.Fatal(err)
	}
	bridge := c.name
	c.ip("link", "set", "dev", "lo", "up")
	if c.secure {
		c.etcdSecure = newSecureEtcd(t, filepath.Join(dir, "etcd"), c.host(1))
	}
	c.ip("link", "add", bridge, "type", "bridge")
	c.ip("address", "add", c.host(1)+"/24", "dev", bridge)
	c.ip("link", "set", "dev", bridge, "up")
	for range servers {
		c.add()
	}
	return c
}

// host is an address on the bridge; the test's is the first.
func (c *control) host(n int) string { return fmt.Sprintf("198.18.%d.%d", c.subnet, n) }

// startEtcd runs an etcd of one member on a port of all addresses.
func startEtcd(t testing.TB, dir string) (port string) {
	t.Helper()
	_, port, err := net.SplitHostPort(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	e, err := embed.StartEtcd(etcdConfig(dir, "http", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(20 * time.Second):
		t.Fatal("etcd is not ready")
	}
	return port
}

// add makes the namespace of a further server, and starts it.
func (c *control) add() *member {
	c.t.Helper()
	m := c.namespace()
	if len(c.members) > 0 {
		if err := c.client(c.members[0].address).AddServer(c.t.Context(), api.Server{Name: m.name, Address: m.address, Member: m.store}, ""); err != nil {
			c.t.Fatal(err)
		}
	}
	c.members = append(c.members, m)
	c.start(m)
	return m
}

// namespace is where a further server is to run.
func (c *control) namespace() *member {
	c.t.Helper()
	c.made++
	n := c.made
	m := &member{name: fmt.Sprintf("s%d", n), ns: fmt.Sprintf("%s-%d", c.name, n)}
	m.address = c.host(n+1) + ":7443"
	m.run = filepath.Join(c.dir, m.name)
	m.wire = fmt.Sprintf("%s.%d", c.name, n)
	c.ip("netns", "add", m.ns)
	c.t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", m.ns).Run() })
	c.ip("link", "add", m.wire, "type", "veth", "peer", "name", "eth0", "netns", m.ns)
	c.ip("link", "set", "dev", m.wire, "master", c.name, "up")
	c.ip("-n", m.ns, "address", "add", c.host(n+1)+"/24", "dev", "eth0")
	c.ip("-n", m.ns, "link", "set", "dev", "lo", "up")
	c.ip("-n", m.ns, "link", "set", "dev", "eth0", "up")
	c.ca.signServer(m.name, net.ParseIP(c.host(n+1)))
	if m.store = c.host(n+1) + ":7444"; c.external || c.secure {
		m.store = ""
	}
	if m.data = filepath.Join(c.dir, "data-"+m.name); c.disk != "" {
		c.mountDisk(m)
	}
	return m
}

func (c *control) ip(args ...string) {
	c.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		c.t.Fatalf("ip %v: %v\n%s", args, err, out)
	}
}

// start runs a server, and waits until it answers.
func (c *control) start(m *member) {
	c.t.Helper()
	c.launch(m)
	client := c.client(m.address)
	eventually(c.t, 20*time.Second, func() error {
		_, err := client.Servers(c.t.Context())
		return err
	})
}

// launch runs a server.
func (c *control) launch(m *member) {
	c.t.Helper()
	path := func(file string) string { return filepath.Join(c.dir, file) }
	m.cmd = exec.Command("ip", append([]string{"netns", "exec", m.ns, program, "--run", m.run,
		"--cert", path(m.name + ".pem"), "--key", path(m.name + ".key"), "--ca", path("ca.pem"),
		"serve", "--name", m.name, "--listen", m.address, "--data", m.data, "--substrate", path("substrate.yaml")}, c.storeFlags(m)...)...)
	m.cmd.Env = append(os.Environ(), "SUBLET_TEST_CLOCK="+m.clockFile())
	m.log = new(words)
	m.cmd.Stderr = m.log
	cmd := m.cmd
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	said := m.log
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if _ = cmd.Wait(); c.t.Failed() {
			c.t.Logf("%s says:\n%s", m.name, said)
		}
	})
}

// storeFlags say where a server finds the store.
func (c *control) storeFlags(m *member) []string {
	switch {
	case c.secure:
		return c.etcdSecure.flags(c.host(1))
	case c.etcd != "":
		return []string{"--etcd", c.host(1) + ":" + c.etcd}
	case m.name == "s1":
		return []string{"--member", m.store}
	}
	return []string{"--member", m.store, "--join", strings.Join(c.addresses(), ",")}
}

// client is the operator's, of one server or of several.
func (c *control) client(addresses ...string) *api.Client {
	c.t.Helper()
	flags := c.ca.flags("operator")
	client, err := api.NewTLSClient(strings.Join(addresses, ","), flags[1], flags[3], flags[5])
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	return client
}

// operator runs a command of the operator's with the servers that are named.
func (c *control) operator(t *testing.T, addresses []string, args ...string) result {
	t.Helper()
	l := &lab{t: t, run: filepath.Join(c.dir, "operator")}
	return l.sublet(append(append(c.ca.flags("operator"), "--server", strings.Join(addresses, ",")), args...)...)
}

// must is operator for what must be done.
func (c *control) must(t *testing.T, addresses []string, args ...string) string {
	t.Helper()
	r := c.operator(t, addresses, args...)
	if r.code != 0 {
		t.Fatalf("sublet %v: exit code %d\n%s", args, r.code, r.err)
	}
	return r.out
}

// leader is who leads, as any of the servers says.
func (c *control) leader() *member {
	c.t.Helper()
	var leader *member
	eventually(c.t, 20*time.Second, func() error {
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
		defer cancel()
		servers, err := c.client(c.addresses()...).Servers(ctx)
		for i, s := range servers {
			if s.Leads {
				leader = c.members[i]
			}
		}
		if leader == nil {
			err = errors.Join(err, errors.New("nobody leads"))
		}
		return err
	})
	return leader
}

func (c *control) addresses() (list []string) {
	for _, m := range c.members {
		list = append(list, m.address)
	}
	return list
}

// silence is how long no write was answered after do.
func (c *control) silence(n int, do func()) time.Duration {
	c.t.Helper()
	client := c.client(c.addresses()...)
	do()
	began := time.Now()
	for i := 0; ; i++ {
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
		_, err := client.SetDrained(ctx, "m2", (n+i)%2 == 0)
		cancel()
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > 30*time.Second {
			c.t.Fatalf("no server answers: %v (%s)", err, c.suffering)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A server that is killed, or stands still, is replaced by another one within three
// seconds; what was acknowledged before is there, once; who stood still and goes on
// changes nothing and follows.
func TestServersTakeOver(t *testing.T) {
	if !secluded(t) {
		return
	}
	c := newControl(t, 3, twoHosts)
	history := c.record(4)
	for n, fault := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		leader := c.leader()
		watch := stall.Start()
		took := c.lost(n, fault)
		if starved := watch.Stop().Lost(); took > takeover+starved {
			t.Errorf("after %v of %s nobody answered for %s (processors were short for %s)", fault, leader.name, took, starved)
		}
		t.Logf("%v: %s", fault, took)
	}
	history.check()
}

// soakServers is how long faults go on unless SUBLET_SOAK says longer.
const soakServers = 15 * time.Second

// Whatever becomes of servers, at random and one after another, the history stays
// linearizable, and at the end the control plane answers.
func TestSoakServersFaults(t *testing.T) {
	if !secluded(t) {
		return
	}
	c := newControl(t, 3, twoHosts)
	history := c.record(6)
	span := soakServers
	if d, err := time.ParseDuration(os.Getenv("SUBLET_SOAK")); err == nil {
		span = d
	}
	faults := 0
	for until := time.Now().Add(span); time.Now().Before(until); faults++ {
		m := c.members[rand.IntN(len(c.members))]
		if rand.IntN(2) == 0 {
			m = c.leader()
		}
		c.fault(m)
	}
	t.Logf("%d faults", faults)
	c.leader()
	history.check()
	for _, m := range c.members {
		if text := m.log.String(); strings.Contains(text, "panic") || strings.Contains(text, "defect") {
			t.Errorf("%s says:\n%s", m.name, text)
		}
	}
}

// fault kills a server, stops it or cuts its network off, for a while.
func (c *control) fault(m *member) {
	c.t.Helper()
	pause := func() { time.Sleep(time.Duration(rand.IntN(4000)) * time.Millisecond) }
	switch rand.IntN(3) {
	case 0:
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		c.start(m)
	case 1:
		_ = m.cmd.Process.Signal(syscall.SIGSTOP)
		pause()
		_ = m.cmd.Process.Signal(syscall.SIGCONT)
	default:
		c.ip("link", "set", "dev", m.wire, "down")
		pause()
		c.ip("link", "set", "dev", m.wire, "up")
	}
}

// Servers come and go while others lead: one that was not added is refused, the
// last one stays, a removed one ends and another leads.
func TestServersComeAndGo(t *testing.T) {
	t.Parallel()
	if !secluded(t) {
		return
	}
	c := newControl(t, 2, twoHosts)
	first, second := c.members[0], c.members[1]
	if text := c.must(t, []string{second.address}, "servers"); !strings.Contains(text, "s1") || strings.Count(text, "leads") != 1 {
		t.Errorf("sublet servers: %s", text)
	}
	out, err := exec.Command("ip", "netns", "exec", second.ns, program, "--run", filepath.Join(c.dir, "stranger"),
		"serve", "--name", "s9", "--etcd", c.host(1)+":"+c.etcd, "--data", filepath.Join(c.dir, "stranger")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "sublet servers add s9") {
		t.Errorf("a server that was not added: %v, %s", err, out)
	}
	c.must(t, []string{second.address}, "servers", "remove", first.name)
	if err := first.cmd.Wait(); err == nil || !strings.Contains(first.log.String(), "s1 was removed from the servers") {
		t.Errorf("the removed server: %v\n%s", err, first.log)
	}
	c.members = c.members[1:]
	if leader := c.leader(); leader != second {
		t.Errorf("%s leads", leader.name)
	}
	if r := c.operator(t, []string{second.address}, "servers", "remove", "s2"); r.code != 5 || !strings.Contains(r.err, "the only server") {
		t.Errorf("removing the last server: exit code %d, %s", r.code, r.err)
	}
	c.must(t, []string{second.address}, "servers", "replace", "s2", "s4", c.host(9)+":7443")
	if err := second.cmd.Wait(); err == nil {
		t.Error("the replaced server ended without an error")
	}
}

// A running network loses no packet while servers come and go; its host's agent
// finds the one that leads, and gets what is leased there.
func TestServersChangeUnderTraffic(t *testing.T) {
	t.Parallel()
	if !secluded(t) {
		return
	}
	c := newControl(t, 2, oneHost)
	host := c.agent("m1")
	leader := c.leader()
	rest := slices.DeleteFunc(c.addresses(), func(a string) bool { return a == leader.address })
	// By the server that does not lead: it passes on where the agent connects from.
	c.must(t, rest, "up", host.file("n.yaml", strings.Replace(onOneHost, "network: n", "network: n\ntenant: bin", 1)))
	c.must(t, rest, "exec", "bin/n/a", "-d", "--", "ping", "-q", "-i", "0.01", "-c", "200", "b")
	_ = leader.cmd.Process.Kill()
	c.must(t, rest, "up", host.file("second.yaml", strings.Replace(onOneHost, "network: n", "network: second\ntenant: bin", 1)))
	c.must(t, rest, "exec", "bin/second/a", "--", "ping", "-c", "1", "b")
	eventually(t, 20*time.Second, func() error {
		if text := c.must(t, rest, "logs", "bin/n/a"); !strings.Contains(text, "200 packets transmitted, 200 received") {
			return errors.New(text)
		}
		return nil
	})
	for _, name := range []string{"bin/n", "bin/second"} {
		c.must(t, rest, "down", name)
	}
	eventually(t, 20*time.Second, func() error {
		left, err := os.ReadDir(filepath.Join(host.run, "netns", "m1"))
		if len(left) > 0 || err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("left are %v, %v", left, err)
		}
		return nil
	})
}

// BenchmarkServers measures what several servers cost, and how long nobody leads
// after one was killed or stands still; -benchtime 20x: of 20 each.
func BenchmarkServers(b *testing.B) {
	if !secluded(b) {
		return
	}
	for _, n := range []int{1, 3, 5} {
		c := newControl(b, n, twoHosts)
		leader := c.leader()
		c.latency(b, fmt.Sprintf("up-down/servers=%d/by=leader", n), leader)
		if n == 1 {
			continue
		}
		follower := c.members[(slices.Index(c.members, leader)+1)%n]
		c.latency(b, fmt.Sprintf("up-down/servers=%d/by=follower", n), follower)
		for _, fault := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
			b.Run(fmt.Sprintf("takeover/servers=%d/by=%s", n, strings.ReplaceAll(fault.String(), " ", "-")), func(b *testing.B) {
				var took []float64
				for i := range b.N {
					took = append(took, c.lost(i, fault).Seconds()*1e3)
				}
				reportSpread(b, took)
			})
		}
	}
}

// lost is how long nobody answered after a fault of the leader, which is mended then.
func (c *control) lost(n int, fault syscall.Signal) time.Duration {
	leader := c.leader()
	took := c.silence(n, func() { _ = leader.cmd.Process.Signal(fault) })
	if fault == syscall.SIGKILL {
		_ = leader.cmd.Wait()
		c.start(leader)
	} else {
		_ = leader.cmd.Process.Signal(syscall.SIGCONT)
	}
	return took
}

// latency measures leasing and releasing a network of one node, and looking at it.
func (c *control) latency(b *testing.B, name string, by *member) {
	client := c.client(by.address)
	b.Run(name, func(b *testing.B) {
		var took []float64
		for i := range b.N {
			network := fmt.Sprintf("n%d-%d", b.N, i)
			began := time.Now()
			for _, verb := range []int{verbUp, verbGet, verbDown} {
				if answer := answerOf(b.Context(), client, asked{verb, network}, ""); answer == answerUnknown {
					b.Fatalf("%d: %s", verb, answer)
				}
			}
			took = append(took, time.Since(began).Seconds()*1e3)
		}
		reportSpread(b, took)
	})
}

// reportSpread reports median, least and most, in ms.
func reportSpread(b *testing.B, ms []float64) {
	slices.Sort(ms)
	b.ReportMetric(ms[len(ms)/2], "median-ms")
	b.ReportMetric(ms[0], "least-ms")
	b.ReportMetric(ms[len(ms)-1], "most-ms")
	b.ReportMetric(0, "ns/op")
}
