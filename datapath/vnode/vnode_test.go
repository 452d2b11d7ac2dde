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
	"sublet/datapath/vnode/process"
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
	p := partOn(h)
	t.Cleanup(func() {
		have := observe(t, p)
		for _, n := range plan.Of[plan.VNode](have) {
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

// tenants are an owner that is nobody and one with users of his own. The race detector
// makes each process of a node sleep for a second before it ends, so with -short the
// latter has to do.
func tenants() []uint32 {
	if testing.Short() {
		return []uint32{4242}
	}
	return []uint32{0, 4242}
}

func node(name string, owner uint32) plan.VNode {
	return plan.VNode{Lease: demo, Node: name, Owner: owner}
}

// run runs argv in a node and returns its output and exit code.
func run(t *testing.T, p *Part, n plan.VNode, argv ...string) (string, int) {
	t.Helper()
	cmd, err := p.Command(n.Key(), argv, Options{})
	check(t, err)
	defer cmd.Done()
	cmd.WaitDelay = 100 * time.Millisecond // what it leaves running keeps its output open
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
		"link gone":  func() { check(t, os.Remove(h.Path(n.Key()))) },
		"removed":    func() { check(t, kernel.Unbind(h.Path(n.Key()))) },
		"group":      func() { check(t, p.host.Group(n.Key()).Remove()) },
		"left empty": func() { check(t, kernel.Unbind(h.Path(n.Key()))); check(t, os.WriteFile(h.Path(n.Key()), nil, 0)) },
	} {
		do(t, p, plan.Add, n)
		has(t, p, n)
		damage()
		have := observe(t, p)
		if len(plan.Of[plan.VNode](have)) != 1 || reflect.DeepEqual(plan.Of[plan.VNode](have)[0], n) {
			t.Errorf("%s: observed %v", what, plan.Of[plan.VNode](have))
		}
		do(t, p, plan.Set, n)
		has(t, p, n)
		if left, err := filepath.Glob(filepath.Join(h.Dir("netns"), ".*")); err != nil || len(left) != 1 {
			t.Errorf("%s: mounted are %v, %v", what, left, err)
		}
	}
}

func TestRestartedAgentUsesTheSameUser(t *testing.T) {
	p, h := newPart(t)
	do(t, p, plan.Add, node("n0", 1000))
	p.Close()
	again := partOn(h)
	defer again.Close()
	do(t, again, plan.Add, node("n1", 1000))
	has(t, again, node("n0", 1000), node("n1", 1000))
}

// partOn is a part that reads processes.
func partOn(h *kernel.Host) *Part {
	p := New(h)
	p.Process = process.Of
	return p
}
