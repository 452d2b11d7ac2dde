package join

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/internal/stall"
	"sublet/plan"
	"sublet/vnet"
)

// TestMain lets the part start this program as it starts sublet.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == kernel.InitCommand:
		fmt.Fprintln(os.Stderr, kernel.RunLaunch())
		os.Exit(1)
	case len(os.Args) > 1 && os.Args[1] == Command:
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

var laptop = plan.Join{
	Lease: vnet.LeaseID{Tenant: "alice", Network: "demo"}, Node: "laptop", Serial: 7,
	At: netip.MustParseAddrPort("127.0.0.1:51820"), Address: netip.MustParseAddr("10.0.0.2"),
	Others: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, MTU: 1400, Devices: []string{"eth0"},
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newPart makes one for a host and the namespace of a node with a link.
func newPart(t *testing.T) (*Part, *os.File) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	run := t.TempDir()
	namespace := func(path string, setup func() error) *os.File {
		ns, err := kernel.NewNamespace(setup)
		check(t, err)
		check(t, kernel.Bind(ns, path))
		t.Cleanup(func() { kernel.Unbind(path); ns.Close() })
		return ns
	}
	ip := func(lines ...string) func() error {
		return func() error {
			for _, line := range lines {
				if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
					return fmt.Errorf("ip %s: %w: %s", line, err, out)
				}
			}
			return nil
		}
	}
	home := filepath.Join(run, "home")
	namespace(home, ip("link set lo up"))
	host, err := kernel.NewHost(kernel.Config{Host: "h1", Run: run, Namespace: home, Cgroup: filepath.Join("sublet", filepath.Base(filepath.Dir(run)), "h1")})
	check(t, err)
	t.Cleanup(func() { host.Close() })
	ns := namespace(host.Path(laptop.Key()), ip("link add eth0 type veth peer name far", "link set eth0 up", "addr add 10.0.0.2/32 dev eth0"))
	p := New(host, filepath.Join(run, "data"))
	t.Cleanup(func() {
		check(t, p.group(laptop.Key()).Remove())
		p.group(laptop.Key()).RemoveParents()
	})
	return p, ns
}

func (p *Part) observed(t *testing.T) []plan.Join {
	t.Helper()
	var host plan.Host
	check(t, p.Observe(context.Background(), &host))
	if len(host.Unknown) > 0 {
		t.Fatalf("could not look at: %v", host.Unknown)
	}
	return plan.Of[plan.Join](host)
}

func (p *Part) done(t *testing.T, op plan.Op, j plan.Join) {
	t.Helper()
	check(t, p.Do(context.Background(), plan.Step{Op: op, Item: j}))
}

// Whatever is damaged is seen, and is right again when it is set again; what is
// deleted leaves nothing, and keys last as long as the lease.
func TestDamagedJoinIsSeenAndMended(t *testing.T) {
	p, ns := newPart(t)
	p.done(t, plan.Add, laptop)
	given, err := p.Join(laptop.Key(), "")
	check(t, err)
	inside := func(line string) {
		check(t, kernel.In(ns, func() error {
			out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("ip %s: %w: %s", line, err, out)
			}
			return nil
		}))
	}
	for what, damage := range map[string]func(){
		"nothing":           func() {},
		"no process":        func() { check(t, p.group(laptop.Key()).Remove()) },
		"device down":       func() { inside("link set wg0 down") },
		"another MTU":       func() { inside("link set wg0 mtu 1300") },
		"no rule":           func() { inside("rule del priority 10") },
		"kernel's own rule": func() { inside("rule add priority 0 table local") },
		"no route":          func() { inside("route flush table 77") },
		"no forwarding": func() {
			check(t, kernel.In(ns, func() error { return kernel.Sysctl("ipv4/conf/eth0/forwarding", "0") }))
		},
	} {
		damage()
		if seen := !reflect.DeepEqual(p.observed(t), []plan.Join{laptop}); seen != (what != "nothing") {
			t.Errorf("%s: seen: %t", what, seen)
		}
		p.done(t, plan.Set, laptop)
		if have := p.observed(t); !reflect.DeepEqual(have, []plan.Join{laptop}) {
			t.Fatalf("%s: observed %v, made %v", what, have, laptop)
		}
	}
	if k, err := p.keysOf(laptop); err != nil || k.Private.PublicKey().String() != given.Public || k.Machine.String() != given.Machine {
		t.Errorf("keys are others after accidents: %v", err)
	}
	again := laptop
	again.Serial++
	p.done(t, plan.Set, again)
	if k, err := p.keysOf(again); err != nil || k.Private.PublicKey().String() == given.Public || k.Machine.String() == given.Machine {
		t.Errorf("a new lease of the name has the keys of the former: %v", err)
	}
	p.done(t, plan.Delete, again)
	if have := p.observed(t); have != nil {
		t.Errorf("after deletion: %v", have)
	}
	for _, path := range []string{p.dir(laptop.Key()), p.data} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	stall.Wait(t, 5*time.Second, 10*time.Millisecond, func() error {
		return kernel.In(p.host.Home(), func() error {
			f, err := socketAt(laptop.At)
			if err == nil {
				f.Close()
			}
			return err
		})
	})
	p.done(t, plan.Delete, again) // what is not there is fine
}

// A port that somebody else on the host has is said, and keys that are none are
// refused without harm to who joins.
func TestJoinIsRefused(t *testing.T) {
	p, _ := newPart(t)
	var taken *os.File
	check(t, kernel.In(p.host.Home(), func() (err error) {
		taken, err = socketAt(laptop.At)
		return err
	}))
	err := p.Do(context.Background(), plan.Step{Op: plan.Add, Item: laptop})
	if !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a port that is taken: %v", err)
	}
	if _, err := p.Join(laptop.Key(), ""); err == nil {
		t.Error("a machine joined where nothing is")
	}
	taken.Close()
	p.done(t, plan.Add, laptop)
	given, err := p.Join(laptop.Key(), "")
	check(t, err)
	for _, public := range []string{"x", strings.Repeat("A", 43) + "=", given.Public[:40], given.Public + "\nlisten_port=1"} {
		if _, err := p.Join(laptop.Key(), public); err == nil {
			t.Errorf("%q was taken for a key", public)
		}
	}
	if k, err := p.keysOf(laptop); err != nil || k.Machine.String() != given.Machine {
		t.Errorf("keys that were refused shut out who joined: %v", err)
	}
	check(t, p.Revoke(laptop.Key()))
	answer, err := p.ask(laptop.Key(), []string{"get=1"})
	if check(t, err); strings.Contains(strings.Join(answer, " "), "public_key=") {
		t.Errorf("the process still knows who was shut out: %q", answer)
	}
	p.done(t, plan.Delete, laptop)
}
