package nsh

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// side is one host with a lease's fabric and a node at a port of it.
type testHost struct {
	*kernel.Host
	part *Part
	home string // file of the namespace
}

// testGround is two hosts, a chain's ends and a node that is a function.
//
//	a [eth0] == [la0] fabric | host h1 [up0] ==wire== [up0] host h2 | fabric [lb0] == [eth0] b
//	                                                                  fabric [fi0] == [i0] f [o0] == [fo0] fabric
type testGround struct {
	t       testing.TB
	dir     string
	h1, h2  testHost
	a, b, f string // files of namespaces
}

const fabric = "alice-demo"

func newGround(t testing.TB) *testGround {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	if t, test := t.(*testing.T); test {
		t.Parallel()
	}
	check(t, bpf.Supported())
	g := &testGround{t: t, dir: t.TempDir()}
	g.h1, g.h2 = g.host("h1"), g.host("h2")
	g.a, g.b, g.f = g.namespace("a"), g.namespace("b"), g.namespace("f")
	g.wire(g.h1.home, "up0", g.h2.home, "up0")
	g.in(g.h1.home, "ip addr add 10.9.0.1/24 dev up0")
	g.in(g.h2.home, "ip addr add 10.9.0.2/24 dev up0")
	g.wire(g.h1.Path(fabric), "la0", g.a, "eth0")
	g.wire(g.h2.Path(fabric), "lb0", g.b, "eth0")
	g.wire(g.h2.Path(fabric), "fi0", g.f, "i0")
	g.wire(g.h2.Path(fabric), "fo0", g.f, "o0")
	for _, n := range []struct{ ns, own, other, otherMAC, mac string }{
		{g.a, "192.168.7.1", "192.168.7.2", macB, macA}, {g.b, "192.168.7.2", "192.168.7.1", macA, macB},
	} {
		v6 := func(s string) string { return "fd00:7::" + s[len(s)-1:] }
		g.in(n.ns, "ip link set eth0 address "+n.mac, "ip addr add "+n.own+"/24 dev eth0", "ip addr add "+v6(n.own)+"/64 dev eth0 nodad",
			"ip neigh replace "+n.other+" lladdr "+n.otherMAC+" dev eth0", "ip neigh replace "+v6(n.other)+" lladdr "+n.otherMAC+" dev eth0",
			"ip link set eth0 mtu 1450")
	}
	return g
}

const macA, macB = "02:00:00:00:00:0a", "02:00:00:00:00:0b"

func (g *testGround) host(name string) testHost {
	home := g.namespace(name)
	h, err := kernel.NewHost(kernel.Config{Host: name, Run: filepath.Join(g.dir, "run"), Namespace: home})
	check(g.t, err)
	g.t.Cleanup(func() { h.Close() })
	check(g.t, h.MakeSilent(fabric))
	g.t.Cleanup(func() { kernel.Unbind(h.Path(fabric)) })
	p := New(h)
	g.t.Cleanup(func() {
		check(g.t, p.Delete(fabric))
		if left, err := bpf.Left(h, pinsPart); err != nil || left {
			g.t.Errorf("pins are left on %s: %v, %v", name, left, err)
		}
		p.Close()
	})
	return testHost{Host: h, part: p, home: home}
}

func (g *testGround) namespace(name string) string {
	ns, err := kernel.NewNamespace(func() error { return nil })
	check(g.t, err)
	defer ns.Close()
	file := filepath.Join(g.dir, "ns-"+name)
	check(g.t, kernel.Bind(ns, file))
	g.t.Cleanup(func() { kernel.Unbind(file) })
	g.in(file, "ip link set lo up")
	return file
}

func (g *testGround) command(ns string, line string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=" + ns}, strings.Fields(line)...)...)
}

func (g *testGround) in(ns string, lines ...string) string {
	g.t.Helper()
	out, err := exec.Command("nsenter", "--net="+ns, "sh", "-ec", strings.Join(lines, "\n")).CombinedOutput()
	if err != nil {
		g.t.Fatalf("%s: %v: %s", lines, err, out)
	}
	return string(out)
}

func (g *testGround) wire(ns1, dev1, ns2, dev2 string) {
	g.t.Helper()
	g.in(ns1, "ip link add "+dev1+" type veth peer name "+dev2+" netns "+ns2, "ip link set "+dev1+" up")
	g.in(ns2, "ip link set "+dev2+" up")
}

// pings says whether an echo is answered.
func (g *testGround) pings(ns, to string, more ...string) bool {
	g.t.Helper()
	args := append([]string{"--net=" + ns, "ping", "-n", "-c1", "-W0.4"}, append(more, to)...)
	for range 3 { // the first may wait for a neighbour
		if exec.Command("nsenter", args...).Run() == nil {
			return true
		}
	}
	return false
}

// eventually polls.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// hop finds a row's counts.
func (h testHost) hop(t testing.TB, path uint32, index uint8) Counts {
	t.Helper()
	r, err := h.part.Report(fabric)
	check(t, err)
	for _, c := range r.Hops {
		if c.Path == path && c.Index == index {
			return c
		}
	}
	t.Fatalf("no row %d, %d in %+v", path, index, r)
	return Counts{}
}

func (h testHost) drops(t testing.TB) map[string]uint64 {
	t.Helper()
	r, err := h.part.Report(fabric)
	check(t, err)
	return r.Drops
}
