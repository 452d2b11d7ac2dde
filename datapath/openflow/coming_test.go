package openflow

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// TestMain lets the part start this program as it starts sublet: it is a switch's process
// that hangs, or ends where its directory has a file that says so.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == kernel.InitCommand:
		fmt.Fprintln(os.Stderr, kernel.RunLaunch())
		os.Exit(1)
	case len(os.Args) > 1 && os.Args[1] == "openflow":
		if _, err := os.Stat(ends); err == nil {
			fmt.Fprintln(os.Stderr, "no room for its tables")
			os.Exit(1)
		}
		time.Sleep(time.Minute)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const ends = "ends"

// newSwitch makes a part, and a switch whose namespaces are there.
func newSwitch(t *testing.T) (*Part, plan.Switch) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	run := t.TempDir()
	host, err := kernel.NewHost(kernel.Config{Host: "h1", Run: run, Cgroup: filepath.Join("sublet", filepath.Base(filepath.Dir(run)), "h1")})
	check(err)
	p := New(host)
	s := plan.Switch{
		Lease: vnet.LeaseID{Tenant: "t", Network: "n"}, Switch: "s1", Type: vnet.SwitchOpenFlow,
		OpenFlow: &plan.OpenFlow{Memory: 64 << 20, Controllers: []string{"ptcp::6653"}, Tables: 1, Entries: 1, Groups: 1, Meters: 1, PacketIns: 1, DatapathID: 1},
	}
	check(host.MakeSilent(s.ControlNamespace()))
	t.Cleanup(func() {
		check(p.Do(t.Context(), plan.Step{Op: plan.Delete, Item: s}))
		p.Close()
		check(kernel.Unbind(host.Path(s.ControlNamespace())))
		host.Group("x").RemoveParents()
		check(host.Close())
	})
	check(os.MkdirAll(p.dir(s.Key()), 0o700))
	return p, s
}

// stands does and observes a switch, for which nobody waits.
func stands(t *testing.T, p *Part, s plan.Switch) {
	t.Helper()
	began := time.Now()
	if err := p.Do(t.Context(), plan.Step{Op: plan.Add, Item: s}); err != nil {
		t.Fatal(err)
	}
	have, want := plan.Host{}, plan.Host{}
	want.Add(s)
	if err := p.Observe(t.Context(), &have); err != nil {
		t.Fatal(err)
	}
	if steps := plan.Diff(want, have); len(steps) > 0 {
		t.Errorf("what is on its way is to be done again: %v", steps)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Nobody waits for a process that does not begin to answer: not who asks for it, who
// looks, who wants something else, or who takes it away.
func TestNobodyWaitsForProcesses(t *testing.T) {
	p, s := newSwitch(t)
	for range 2 {
		stands(t, p, s)
		list := p.Problems()
		if len(list) != 1 || list[0].Op != plan.Await || list[0].Lease != s.Lease || !strings.Contains(list[0].Text, "switch s1: its process is starting") {
			t.Fatalf("problems: %v", list)
		}
		o := *s.OpenFlow
		o.DatapathID++
		s.OpenFlow = &o
	}
	began := time.Now()
	if err := p.Do(t.Context(), plan.Step{Op: plan.Delete, Item: s}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("to take it away took %v", took)
	}
	if list := p.Problems(); len(list) > 0 {
		t.Errorf("problems of what is gone: %v", list)
	}
}

// A process that ends is tried again with longer and longer pauses, and the lease is told
// why; what it was told is given up when it may be that which ends it.
func TestProcessesThatEndAreTriedLessOften(t *testing.T) {
	p, s := newSwitch(t)
	for _, name := range []string{ends, "state"} {
		if err := os.WriteFile(p.file(s.Key(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stands(t, p, s)
	fell := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.fates[s.Key()].fell
	}
	for end := time.Now().Add(30 * time.Second); fell() < 3; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("tried %d times", fell())
		}
	}
	list := p.Problems()
	if len(list) != 1 || list[0].Op != plan.Carry || !strings.Contains(list[0].Text, "no room for its tables") {
		t.Errorf("problems: %v", list)
	}
	if _, err := os.Stat(p.file(s.Key(), "state")); !os.IsNotExist(err) {
		t.Errorf("what it was told is there after %d tries: %v", fell(), err)
	}
}

func TestPauses(t *testing.T) {
	f := fate{}
	for i, want := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second} {
		f.since = time.Now()
		if f = f.after(true); f.pause() != want {
			t.Errorf("after %d ends: %v", i+1, f.pause())
		}
	}
	f.fell = 100
	if f.pause() != mostPause {
		t.Errorf("after a hundred: %v", f.pause())
	}
	f.since = time.Now().Add(-2 * steady)
	if f = f.after(true); f.pause() != 0 {
		t.Errorf("after a long life: %v", f.pause())
	}
}

// What a process says is told once, and not as often as its tenant can make it speak.
func TestWhatProcessesSayIsTold(t *testing.T) {
	p, s := newSwitch(t)
	if err := p.keep(s); err != nil {
		t.Fatal(err)
	}
	said := func(text string) (told []string) {
		if err := os.WriteFile(p.file(s.Key(), toldFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p.listen([]string{s.Key()})
		for _, step := range p.Mended() {
			told = append(told, report.RepairText(step))
		}
		return told
	}
	if told := said("one\ncontroller 10.0.0.1:6653: it did not read\n"); len(told) != 1 || told[0] != "switch s1: controller 10.0.0.1:6653: it did not read" {
		t.Errorf("told: %q", told)
	}
	if told := said("again\n"); len(told) > 0 {
		t.Errorf("told at once again: %q", told)
	}
}
