package vxrouter

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// TestMain lets the test binary stand in for sublet's hidden subcommand.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == kernel.InitCommand {
		fmt.Fprintln(os.Stderr, kernel.RunLaunch())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

var demo = vnet.LeaseID{Tenant: "alice", Network: "demo"}

// bench is a host with nodes of one tenant.
type bench struct {
	*testing.T
	host *kernel.Host
	part *Part
}

const firstTenant = 1000

func newBench(t *testing.T) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	run, err := os.MkdirTemp("/tmp", "vxrouter")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t}
	b.check(os.Chmod(run, 0o755))
	b.host, err = kernel.NewHost(kernel.Config{Host: filepath.Base(run), Run: run})
	b.check(err)
	b.part = New(b.host)
	b.Cleanup(func() {
		b.part.Close()
		for _, key := range b.pinned() {
			b.check(b.part.forget(key))
		}
		b.host.Group("x").RemoveParents()
		b.host.Close()
		b.check(os.RemoveAll(run))
	})
	return b
}

func (b *bench) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// node makes what datapath/vnode would: a namespace owned by the tenant's user
// namespace.
func (b *bench) node(name string) string {
	b.Helper()
	key := plan.Namespace(demo, name)
	uid := uint32(firstTenant)
	for ; ; uid++ { // each node of this test has a user namespace of its own
		if _, err := os.Stat(b.host.OwnerFile(uid)); err != nil {
			break
		}
	}
	cmd := exec.Command("sleep", "100")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: int(uid), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: int(uid), Size: 1}},
	}
	b.check(cmd.Start())
	for kind, path := range map[string]string{"net": b.host.Path(key), "user": b.host.OwnerFile(uid)} {
		ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", cmd.Process.Pid, kind))
		b.check(err)
		b.check(kernel.Bind(ns, path))
		ns.Close()
		b.Cleanup(func() { kernel.Unbind(path) })
	}
	b.Cleanup(func() { b.check(b.host.Group(key).Remove()) })
	b.check(cmd.Process.Kill())
	cmd.Wait()
	b.ip(key, "link", "set", "lo", "up")
	return key
}

func (b *bench) ip(key string, args ...string) string {
	b.Helper()
	out, err := exec.Command("nsenter", append([]string{"--net=" + b.host.Path(key), "ip"}, args...)...).CombinedOutput()
	if err != nil {
		b.Fatalf("ip %v: %v %s", args, err, out)
	}
	return string(out)
}

// join links two nodes, as datapath/vxlink would; a and b are their addresses.
func (b *bench) join(keyA, devA, a, keyB, devB, bb string) {
	b.Helper()
	b.ip(keyA, "link", "add", devA, "type", "veth", "peer", "name", devB, "netns", b.host.Path(keyB))
	b.ip(keyA, "addr", "add", a, "peer", bb+"/32", "dev", devA)
	b.ip(keyB, "addr", "add", bb, "peer", a+"/32", "dev", devB)
	b.ip(keyA, "link", "set", devA, "up")
	b.ip(keyB, "link", "set", devB, "up")
}

func (b *bench) do(op plan.Op, items ...plan.VxRouter) {
	b.Helper()
	for _, item := range items {
		b.check(b.part.Do(context.Background(), plan.Step{Op: op, Item: item}))
	}
}

func (b *bench) has(want ...plan.VxRouter) {
	b.Helper()
	var have plan.Host
	b.check(b.part.Observe(context.Background(), &have))
	list := plan.Of[plan.VxRouter](have)
	for i := range list {
		list[i].Inside = nil // whether an interface is down is another test's matter
	}
	if !reflect.DeepEqual(list, want) {
		b.Fatalf("observed\n%v\nwant\n%v", list, want)
	}
}

func (b *bench) poll(what string, done func() bool) {
	b.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("no %s within 20 s", what)
		}
	}
}

func (b *bench) pings(key, to string) bool { return b.pingsSized(key, to, "56") }

// pingsSized pings with so many bytes behind the ICMP header.
func (b *bench) pingsSized(key, to, size string) bool {
	return exec.Command("nsenter", "--net="+b.host.Path(key), "ping", "-c1", "-W1", "-s", size, to).Run() == nil
}

// route is through a neighbour, or without one to what is on the device.
func route(prefix, via, device string) plan.Route {
	r := plan.Route{Prefix: netip.MustParsePrefix(prefix), Interface: device}
	if via != "" {
		r.Via = netip.MustParseAddr(via)
	}
	return r
}

func router(name string) plan.VxRouter { return plan.VxRouter{Lease: demo, Node: name} }

func TestStaticRoutes(t *testing.T) {
	b := newBench(t)
	n0, r, n1 := b.node("n0"), b.node("r"), b.node("n1")
	b.join(n0, "eth0", "10.0.0.1", r, "eth0", "10.0.0.2")
	b.join(r, "eth1", "10.0.0.2", n1, "eth0", "10.0.0.3")
	b.has()
	b.ip(n1, "addr", "add", "10.9.0.1/32", "dev", "lo") // of another segment, and reached directly
	end0, mid, end1 := router("n0"), router("r"), router("n1")
	end0.Routes = []plan.Route{route("10.0.0.3/32", "10.0.0.2", "eth0"), route("10.9.0.0/16", "10.0.0.2", "eth0")}
	mid.Forward = true
	mid.Routes = []plan.Route{route("10.9.0.1/32", "", "eth1")}
	end1.Routes = []plan.Route{route("0.0.0.0/0", "10.0.0.2", "eth0")}
	for range 2 {
		b.do(plan.Add, end0, mid, end1)
		b.has(end0, end1, mid)
	}
	b.poll("way from n0 to n1", func() bool { return b.pings(n0, "10.0.0.3") })
	b.poll("way from n0 to what is on a device", func() bool { return b.pings(n0, "10.9.0.1") })
	b.ip(n0, "route", "add", "192.0.2.0/24", "via", "10.0.0.2") // the tenant's own
	end0.Routes = end0.Routes[:1]
	b.do(plan.Set, end0)
	b.has(end0, end1, mid)
	if !strings.Contains(b.ip(n0, "route"), "192.0.2.0/24") {
		t.Error("the tenant's route is gone")
	}
	b.ip(n1, "link", "set", "eth0", "down") // takes the routes along
	b.ip(n1, "link", "set", "eth0", "up")
	b.do(plan.Set, end1)
	b.has(end0, end1, mid)
	b.do(plan.Delete, end0, mid, end1)
	b.has()
	if b.pings(n0, "10.0.0.3") {
		t.Error("still a way from n0 to n1")
	}
	b.do(plan.Delete, end0, mid, end1)
}

// TestRoutesByAnInterfaceThatIsDown: nothing is to be done about them, nor fails,
// while their tenant keeps it down; then they are put back.
func TestRoutesByAnInterfaceThatIsDown(t *testing.T) {
	b := newBench(t)
	n0, n1, n2 := b.node("n0"), b.node("n1"), b.node("n2")
	b.join(n0, "eth0", "10.0.0.1", n1, "eth0", "10.0.0.2")
	b.join(n0, "eth1", "10.0.0.1", n2, "eth0", "10.0.0.3")
	end := router("n0")
	end.Routes = []plan.Route{route("10.7.0.0/16", "10.0.0.2", "eth0"), route("10.8.0.0/16", "10.0.0.3", "eth1")}
	b.do(plan.Add, end)
	steps := func(want plan.VxRouter) []plan.Step {
		var planned, have plan.Host
		planned.Add(want)
		b.check(b.part.Observe(t.Context(), &have))
		for _, r := range plan.Of[plan.VxRouter](have) {
			if r.Key() == want.Key() {
				only := plan.Host{}
				only.Add(r)
				return plan.Diff(planned, only)
			}
		}
		return plan.Diff(planned, plan.Host{})
	}
	b.ip(n0, "link", "set", "eth0", "down")
	if list := steps(end); len(list) > 0 {
		t.Errorf("eth0 is down: %v", list)
	}
	end.Routes = append(end.Routes, route("10.9.0.0/16", "10.0.0.2", "eth0"), route("10.10.0.0/16", "10.0.0.3", "eth1"))
	slices.SortFunc(end.Routes, func(x, y plan.Route) int { return plan.ComparePrefixes(x.Prefix, y.Prefix) })
	if list := steps(end); len(list) != 1 {
		t.Errorf("more routes are planned, of which one can be set: %v", list)
	}
	b.do(plan.Set, end)
	if list := steps(end); len(list) > 0 {
		t.Errorf("what can be set is: %v", list)
	}
	b.ip(n0, "link", "set", "eth0", "up")
	if list := steps(end); len(list) != 1 {
		t.Errorf("eth0 is up: %v", list)
	}
	b.do(plan.Set, end)
	b.has(end)
}

// A tenant, who is root of their node, may use our protocol number, for routes
// of every kind: they go, and what is planned stays.
func TestForeignRoutesWithOurNumberGo(t *testing.T) {
	b := newBench(t)
	n0 := b.node("n0")
	b.join(n0, "eth0", "10.0.0.1", b.node("n1"), "eth0", "10.0.0.2")
	end := router("n0")
	end.Routes = []plan.Route{route("10.0.0.3/32", "10.0.0.2", "eth0")}
	b.do(plan.Add, end)
	for _, words := range []string{
		"10.5.0.1 dev eth0", "10.5.0.2 dev eth0 scope link", "blackhole 10.5.0.3", "unreachable 10.5.0.4", "local 10.5.0.5 dev lo table main",
		"10.5.0.6 via 10.0.0.2 metric 7", "10.5.0.6 via 10.0.0.2 metric 8", "10.5.0.7 tos 0x10 via 10.0.0.2", "default dev eth0",
		"10.0.0.3 via 10.0.0.2 metric 9", "10.0.0.3 tos 0x10 via 10.0.0.2",
	} {
		b.ip(n0, append(append([]string{"route", "add"}, strings.Fields(words)...), "proto", "155")...)
	}
	b.ip(n0, "route", "add", "10.5.0.8", "proto", "155", "nexthop", "via", "10.0.0.2", "dev", "eth0", "nexthop", "dev", "lo")
	b.do(plan.Set, end)
	b.has(end)
	if left := strings.Count(b.ip(n0, "route", "show", "proto", "155"), "\n"); left != 1 {
		t.Errorf("left:\n%s", b.ip(n0, "route", "show", "proto", "155"))
	}
}

func TestManyRoutes(t *testing.T) {
	b := newBench(t)
	b.join(b.node("n0"), "eth0", "10.0.0.1", b.node("n1"), "eth0", "10.0.0.2")
	many := router("n0")
	for i := range 10000 {
		many.Routes = append(many.Routes, route(fmt.Sprintf("10.1.%d.%d/32", i/256, i%256), "10.0.0.2", "eth0"))
	}
	start := time.Now()
	b.do(plan.Add, many)
	added := time.Now()
	b.has(many)
	t.Logf("10000 routes: add %v, observe %v", added.Sub(start), time.Since(added))
	b.do(plan.Delete, many)
	b.has()
}
