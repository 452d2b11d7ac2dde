package vnode

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// TestMain lets the test binary stand in for sublet's hidden subcommands.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == InitCommand {
		os.Exit(Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

var demo = vnet.LeaseID{Tenant: "alice", Network: "demo"}

func newPart(t *testing.T) (*Part, *kernel.Host) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	run, err := os.MkdirTemp("/tmp", "vnode")
	check(t, err)
	h, err := kernel.NewHost(kernel.Config{Host: filepath.Base(run), Run: run})
	check(t, err)
	p := New(h)
	t.Cleanup(func() {
		have := observe(t, p)
		for _, n := range have.Nodes {
			check(t, p.Do(context.Background(), plan.Step{Op: plan.Delete, Item: n}))
		}
		observe(t, p)
		p.Close()
		h.Close()
		check(t, os.RemoveAll(run))
	})
	return p, h
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, p *Part, op plan.Op, items ...plan.Item) {
	t.Helper()
	for _, item := range items {
		check(t, p.Do(context.Background(), plan.Step{Op: op, Item: item}))
	}
}

func observe(t *testing.T, p *Part) plan.Host {
	t.Helper()
	var h plan.Host
	check(t, p.Observe(context.Background(), &h))
	return h
}

func has(t *testing.T, p *Part, items ...plan.Item) {
	t.Helper()
	var want plan.Host
	for _, item := range items {
		want.Add(item)
	}
	if got := observe(t, p); !reflect.DeepEqual(got, want) {
		t.Fatalf("observed\n%s\nwant\n%s", got, want)
	}
}

func names() plan.NameTable {
	return plan.NameTable{Lease: demo, Names: []plan.Name{
		{Name: "n0", Address: netip.MustParseAddr("10.0.0.1")}, {Name: "n1", Address: netip.MustParseAddr("10.0.0.2")},
	}}
}

func node(name string, owner uint32) plan.VNode {
	return plan.VNode{Lease: demo, Node: name, Owner: owner}
}

// run runs argv in a node and returns its output and exit code.
func run(t *testing.T, p *Part, n plan.VNode, argv ...string) (string, int) {
	t.Helper()
	cmd, err := p.Command(n.Key(), argv, false)
	check(t, err)
	out, _ := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
}

func TestNode(t *testing.T) {
	p, h := newPart(t)
	limited := plan.VNode{Lease: demo, Node: "n1", Owner: 1000, CPU: 500, Memory: 64 * vnet.MiB}
	small := plan.VNode{Lease: demo, Node: "n2", Owner: 1000, CPU: 3}
	for range 2 {
		do(t, p, plan.Add, names(), node("n0", 0), limited, small)
		has(t, p, names(), node("n0", 0), limited, small)
	}
	limited.CPU, limited.Memory = 1500, 0
	do(t, p, plan.Set, limited)
	has(t, p, names(), node("n0", 0), limited, small)
	for range 2 {
		do(t, p, plan.Delete, node("n0", 0), limited, small, names())
		has(t, p)
	}
	for _, kind := range []string{"netns", "userns", "hosts"} {
		if left, _ := h.Names(kind); len(left) != 0 {
			t.Errorf("left in %s: %v", kind, left)
		}
	}
	if p.host.Group("x").Exists() {
		t.Error("control group left")
	}
}

func TestBrokenNodeComesBack(t *testing.T) {
	p, h := newPart(t)
	n := node("n0", 1000)
	for what, damage := range map[string]func(){
		"unmounted":  func() { check(t, exec.Command("umount", h.Path(n.Key())).Run()) },
		"removed":    func() { check(t, kernel.Unbind(h.Path(n.Key()))) },
		"group":      func() { check(t, p.host.Group(n.Key()).Remove()) },
		"left empty": func() { check(t, kernel.Unbind(h.Path(n.Key()))); check(t, os.WriteFile(h.Path(n.Key()), nil, 0)) },
	} {
		do(t, p, plan.Add, n)
		has(t, p, n)
		damage()
		have := observe(t, p)
		if len(have.Nodes) != 1 || reflect.DeepEqual(have.Nodes[0], n) {
			t.Errorf("%s: observed %v", what, have.Nodes)
		}
		do(t, p, plan.Set, n)
		has(t, p, n)
	}
}

func TestRestartedAgentUsesTheSameUser(t *testing.T) {
	p, h := newPart(t)
	do(t, p, plan.Add, node("n0", 1000))
	p.Close()
	again := New(h)
	defer again.Close()
	do(t, again, plan.Add, node("n1", 1000))
	has(t, again, node("n0", 1000), node("n1", 1000))
}

func TestSessionIsConfined(t *testing.T) {
	p, h := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, names(), n, node("other", 1000))
	secret := filepath.Join(t.TempDir(), "secret")
	check(t, os.WriteFile(secret, []byte("x"), 0o600))
	for _, c := range []struct {
		argv []string
		out  string
		code int
	}{
		{[]string{"id", "-u"}, "0", 0},
		{[]string{"id", "-G"}, "0", 0},
		{[]string{"hostname"}, "n0", 0},
		{[]string{"getent", "hosts", "n1"}, "10.0.0.2        n1", 0},
		{[]string{"cat", "/sys/class/net/lo/operstate"}, "unknown", 0},
		{[]string{"ls", "/sys/class/net"}, "lo", 0},
		{[]string{"ls", h.Run}, "sublet", 0},
		{[]string{"ls", "/proc/self/fd"}, "0\n1\n2\n3", 0}, // 3 is the directory
		{[]string{"cat", secret}, "cat: " + secret + ": Permission denied", 1},
		{[]string{"touch", "/etc/x"}, "touch: cannot touch '/etc/x': Permission denied", 1},
		{[]string{"nsenter", "--net=/proc/1/ns/net", "true"}, "nsenter: cannot open /proc/1/ns/net: Permission denied", 1},
		{[]string{"kill", "-9", "1"}, "kill: (1): Operation not permitted", 1},
		{[]string{"hostname", "evil"}, "hostname: you must be root to change the host name", 1},
		{[]string{"umount", "/etc/hosts"}, "umount: /etc/hosts: must be superuser to unmount.", 32},
		{[]string{"false"}, "", 1},
	} {
		if out, code := run(t, p, n, c.argv...); out != c.out || code != c.code {
			t.Errorf("%v: %d %q, want %d %q", c.argv, code, out, c.code, c.out)
		}
	}
}

func TestSessionSeesOnlyItself(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	out, _ := run(t, p, n, "ls", "/proc")
	for _, entry := range strings.Fields(out) {
		if strings.Trim(entry, "0123456789") == "" && len(entry) > 2 {
			t.Errorf("process %s is visible", entry)
		}
	}
}

func TestKilledSessionLeavesNothing(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	cmd, err := p.Command(n.Key(), []string{"setsid", "--wait", "sleep", "1000"}, false)
	check(t, err)
	check(t, cmd.Start())
	wait(t, "start", func() bool { return len(processes(t, p, n)) >= 3 })
	check(t, cmd.Process.Kill())
	cmd.Wait()
	wait(t, "end", func() bool { return len(processes(t, p, n)) == 0 })
}

func TestDeleteKillsSessions(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	cmd, err := p.Command(n.Key(), []string{"sleep", "1000"}, false)
	check(t, err)
	check(t, cmd.Start())
	wait(t, "start", func() bool { return len(processes(t, p, n)) >= 2 })
	do(t, p, plan.Delete, n)
	if err := cmd.Wait(); err == nil {
		t.Error("the session ended well")
	}
}

func TestMemoryLimitHolds(t *testing.T) {
	p, _ := newPart(t)
	n := plan.VNode{Lease: demo, Node: "n0", Owner: 1000, Memory: 32 * vnet.MiB}
	do(t, p, plan.Add, n)
	out, code := run(t, p, n, "python3", "-c", "x = bytearray(100 << 20)")
	if code != 128+9 {
		t.Errorf("100 MiB under a limit of 32: exit %d %s", code, out)
	}
}

func TestCPULimitHolds(t *testing.T) {
	p, _ := newPart(t)
	n := plan.VNode{Lease: demo, Node: "n0", Owner: 1000, CPU: 200}
	do(t, p, plan.Add, n)
	out, code := run(t, p, n, "python3", "-c", `
import time
end = time.monotonic() + 1
while time.monotonic() < end: pass
print(time.process_time() < 0.35)`)
	if out != "True" || code != 0 {
		t.Errorf("a fifth of a core: exit %d %s", code, out)
	}
}

func TestSignalReachesTheCommand(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	cmd, err := p.Command(n.Key(), []string{"sleep", "1000"}, false)
	check(t, err)
	check(t, cmd.Start())
	wait(t, "start", func() bool { return len(processes(t, p, n)) >= 2 })
	check(t, cmd.Process.Signal(os.Interrupt))
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+2 {
		t.Errorf("interrupted sleep: exit %d", code)
	}
}

func processes(t *testing.T, p *Part, n plan.VNode) []int {
	t.Helper()
	pids, err := p.host.Group(n.Key()).Processes()
	check(t, err)
	return pids
}

func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s within 5 s", what)
		}
	}
}
