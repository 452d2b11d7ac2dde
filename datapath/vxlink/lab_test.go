package vxlink

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// bench is one or more hosts made of namespaces for one test.
type bench struct {
	t   *testing.T
	run string
}

var demo = vnet.LeaseID{Tenant: "alice", Network: "demo"}

func newBench(t *testing.T) *bench {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	b := &bench{t: t, run: t.TempDir()}
	t.Cleanup(b.clean)
	return b
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// namespace makes a namespace file for the life of the test.
func (b *bench) namespace(path string) string {
	b.t.Helper()
	ns, err := kernel.NewNamespace(func() error {
		c, err := kernel.Dial()
		if err != nil {
			return err
		}
		defer c.Close()
		return c.Do(kernel.UpLink(1))
	})
	check(b.t, err)
	defer ns.Close()
	check(b.t, kernel.Bind(ns, path))
	b.t.Cleanup(func() { kernel.Unbind(path) })
	return path
}

// host makes a host and the part under test on it.
func (b *bench) host(name string) (*Part, *kernel.Host) {
	b.t.Helper()
	path := b.namespace(filepath.Join(b.run, "homes", name))
	h, err := kernel.NewHost(kernel.Config{Host: name, Run: b.run, Namespace: path})
	check(b.t, err)
	b.t.Cleanup(func() {
		unpin(b.t, h)
		h.Close()
	})
	return New(h), h
}

// node makes a namespace like a virtual node's.
func (b *bench) node(h *kernel.Host, node string) string {
	return b.namespace(h.Path(plan.Namespace(demo, node)))
}

// ip runs ip(8) in a namespace given by file.
func (b *bench) ip(ns string, args ...string) {
	b.t.Helper()
	b.in(ns, append([]string{"ip"}, args...)...)
}

// in runs a command in a namespace given by file.
func (b *bench) in(ns string, argv ...string) string {
	b.t.Helper()
	out, err := b.try(ns, argv...)
	if err != nil {
		b.t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return out
}

func (b *bench) try(ns string, argv ...string) (string, error) {
	out, err := exec.Command("nsenter", append([]string{"--net=" + ns, "--"}, argv...)...).CombinedOutput()
	return string(out), err
}

// pair makes two hosts with an uplink between them.
func (b *bench) pair() (hosts [2]*kernel.Host, parts [2]*Part) {
	b.t.Helper()
	for i, name := range []string{"h1", "h2"} {
		parts[i], hosts[i] = b.host(name)
	}
	b.ip(hosts[0].Namespace, "link", "add", "phy0", "type", "veth", "peer", "name", "phy0", "netns", hosts[1].Namespace)
	for i, h := range hosts {
		b.ip(h.Namespace, "addr", "add", fmt.Sprintf("10.99.0.%d/24", i+1), "dev", "phy0")
		b.ip(h.Namespace, "link", "set", "phy0", "up")
	}
	return hosts, parts
}

// ping waits for an answer: the first packet may be lost, since devices that
// came up start to send a moment later.
func (b *bench) ping(ns string, to netip.Addr) {
	b.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		out, err := b.try(ns, "ping", "-c1", "-W1", to.String())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("no answer from %s: %s", to, out)
		}
	}
}

func underlay(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 99, 0, byte(i + 1)}) }
func address(i int) netip.Addr  { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }

// port is node n's end of a link to node m.
func port(n, m, device int) *plan.Port {
	return &plan.Port{
		Namespace: plan.Namespace(demo, fmt.Sprintf("n%d", n)), Interface: fmt.Sprintf("eth%d", device),
		MTU: 1450, Address: address(n), Peer: address(m), Metric: 1,
	}
}

// tunnel from host i of a pair.
func tunnel(i int, vni vnet.VNI, rate vnet.Rate) *plan.Tunnel {
	return &plan.Tunnel{
		VNI: vni, Interface: "phy0", Local: underlay(i), Remote: underlay(1 - i), MTU: 1450,
		Class: plan.Class{Guaranteed: plan.Outer(rate), Ceil: plan.Outer(rate)},
	}
}

func local(rate vnet.Rate) plan.VxLink {
	return plan.VxLink{Lease: demo, Link: "n0-n1", Index: 0, Ends: [2]plan.End{
		{Port: port(0, 1, 0), Rate: rate}, {Port: port(1, 0, 0), Rate: rate},
	}}
}

// across is host i's half of a link between node 0 on host 0 and node 1 on host 1.
func across(i int, rate vnet.Rate) plan.VxLink {
	l := plan.VxLink{Lease: demo, Link: "n0-n1", Index: 0}
	l.Ends[i] = plan.End{Port: port(i, 1-i, 0)}
	l.Ends[1-i] = plan.End{Tunnel: tunnel(i, 77, rate), Rate: rate}
	return l
}

func uplink() plan.Uplink {
	return plan.Uplink{Interface: "phy0", Capacity: plan.Outer(10 * vnet.Gbit), Leases: plan.Outer(8 * vnet.Gbit)}
}

func add(t *testing.T, p *Part, items ...plan.Item) {
	t.Helper()
	for _, item := range items {
		check(t, p.Do(context.Background(), plan.Step{Op: plan.Add, Item: item}))
	}
}

func remove(t *testing.T, p *Part, items ...plan.Item) {
	t.Helper()
	for _, item := range items {
		check(t, p.Do(context.Background(), plan.Step{Op: plan.Delete, Item: item}))
	}
}

// observe reads the host back.
func observe(t *testing.T, p *Part) plan.Host {
	t.Helper()
	var h plan.Host
	check(t, p.Observe(context.Background(), &h))
	return h
}

// has fails unless the host has exactly these items.
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

// clean removes what a failed test left mounted.
func (b *bench) clean() {
	files, _ := filepath.Glob(filepath.Join(b.run, "netns", "*", "*"))
	for _, f := range files {
		kernel.Unbind(f)
	}
}
