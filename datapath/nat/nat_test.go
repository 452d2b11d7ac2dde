package nat

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/nftables"

	"sublet/datapath/kernel"
	"sublet/internal/stall"
	"sublet/plan"
	"sublet/vnet"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ground is a host with an interface out0 and the namespace of a router.
//
//	router ==wan0== out0 of the host ==veth== out0 outside
type ground struct {
	t    *testing.T
	host *kernel.Host
	home *kernel.Conn
	part *Part
}

var gate = plan.Gateway{
	Lease: vnet.LeaseID{Tenant: "alice", Network: "demo"}, Node: "out", Interface: "out0",
	Address: netip.MustParseAddr("192.0.2.10"), Via: netip.MustParseAddr("192.0.2.1"),
	Refuse: []vnet.AddrRange{
		vnet.RangeOf(netip.MustParsePrefix("10.0.0.0/8")),
		{First: netip.MustParseAddr("192.0.2.10"), Last: netip.MustParseAddr("192.0.2.12")},
	},
	Publish: []plan.Published{
		{Outside: 8080, Address: netip.MustParseAddr("10.0.0.2"), Port: 80},
		{Outside: 53, Address: netip.MustParseAddr("10.0.0.3"), Port: 5353, UDP: true},
	},
}

func newGround(t *testing.T) *ground {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	run := t.TempDir()
	g := &ground{t: t}
	home := g.namespace(filepath.Join(run, "homes", "h1"))
	var err error
	g.host, err = kernel.NewHost(kernel.Config{Host: "h1", Run: run, Namespace: home})
	check(t, err)
	t.Cleanup(func() { g.host.Close() })
	g.namespace(g.host.Path(gate.Key()))
	g.home, err = g.host.Dial("")
	check(t, err)
	t.Cleanup(func() { g.home.Close() })
	g.interfaceOut("out0")
	g.part = New(g.host)
	return g
}

// namespace makes a namespace file for the life of the test.
func (g *ground) namespace(path string) string {
	g.t.Helper()
	ns, err := kernel.NewNamespace(func() error { return nil })
	check(g.t, err)
	defer ns.Close()
	check(g.t, kernel.Bind(ns, path))
	g.t.Cleanup(func() { kernel.Unbind(path) })
	return path
}

func (g *ground) interfaceOut(name string) {
	g.t.Helper()
	check(g.t, g.home.Do(kernel.NewLink(name, "veth", nil)))
	l, err := g.home.LinkByName(name)
	check(g.t, err)
	check(g.t, g.home.Do(kernel.UpLink(l.Index)))
	check(g.t, g.home.AddAddress(kernel.Address{Index: l.Index, Local: netip.MustParseAddr("192.0.2.2"), Reach: netip.MustParsePrefix("192.0.2.0/24")}))
}

func (g *ground) do(op plan.Op, item plan.Gateway) {
	g.t.Helper()
	check(g.t, g.part.Do(context.Background(), plan.Step{Op: op, Item: item}))
}

func (g *ground) observed() []plan.Gateway {
	g.t.Helper()
	var host plan.Host
	check(g.t, g.part.Observe(context.Background(), &host))
	if len(host.Unknown) > 0 {
		g.t.Fatalf("could not look at: %v", host.Unknown)
	}
	return plan.Of[plan.Gateway](host)
}

func (g *ground) inside() (*os.File, *kernel.Conn) {
	g.t.Helper()
	ns, err := g.host.Open(gate.Key())
	check(g.t, err)
	g.t.Cleanup(func() { ns.Close() })
	c, err := kernel.DialIn(ns)
	check(g.t, err)
	g.t.Cleanup(func() { c.Close() })
	return ns, c
}

// What is made is observed as planned, also after a change; what is deleted
// leaves nothing.
func TestGatewayIsObservedAsMade(t *testing.T) {
	g := newGround(t)
	if have := g.observed(); have != nil {
		t.Fatalf("before anything was made: %v", have)
	}
	g.do(plan.Add, gate)
	if have := g.observed(); !reflect.DeepEqual(have, []plan.Gateway{gate}) {
		t.Fatalf("observed %v\nmade     %v", have, gate)
	}
	other := gate
	other.Address, other.Via, other.Publish = netip.MustParseAddr("192.0.2.11"), netip.MustParseAddr("192.0.2.3"), nil
	g.do(plan.Set, other)
	if have := g.observed(); !reflect.DeepEqual(have, []plan.Gateway{other}) {
		t.Fatalf("observed %v\nmade     %v", have, other)
	}
	g.do(plan.Delete, other)
	if have := g.observed(); have != nil {
		t.Fatalf("after deletion: %v", have)
	}
	ns, c := g.inside()
	if _, err := c.LinkByName(device); !kernel.NotFound(err) {
		t.Errorf("the device is left: %v", err)
	}
	if left, err := readRules(ns); err != nil || left != nil {
		t.Errorf("rules are left: %v %v", left, err)
	}
	g.do(plan.Delete, other) // what is not there is fine
}

// Whatever is damaged is seen, and is right again when it is set again.
func TestDamagedGatewayIsSeenAndMended(t *testing.T) {
	for what, damage := range map[string]func(*ground, *os.File, *kernel.Conn){
		"no device": func(g *ground, _ *os.File, c *kernel.Conn) { check(g.t, deleteDevice(c)) },
		"no table":  func(g *ground, ns *os.File, _ *kernel.Conn) { check(g.t, deleteRules(ns)) },
		"a rule less": func(g *ground, ns *os.File, _ *kernel.Conn) {
			rules := rulesOf(gate, nil)
			check(g.t, writeRules(ns, rules[:len(rules)-1]))
		},
		"an open policy": func(g *ground, ns *os.File, _ *kernel.Conn) {
			c, err := nftables.New(nftables.WithNetNSFd(int(ns.Fd())))
			check(g.t, err)
			forward, accept := *chains()[1], nftables.ChainPolicyAccept
			forward.Policy = &accept
			c.AddChain(&forward)
			check(g.t, c.Flush())
		},
		"the device down": func(g *ground, _ *os.File, c *kernel.Conn) {
			l, err := c.LinkByName(device)
			check(g.t, err)
			check(g.t, c.Do(kernel.DownLink(l.Index)))
		},
		"no way on": func(g *ground, _ *os.File, c *kernel.Conn) {
			check(g.t, c.Do(kernel.DeleteRoute(kernel.Route{Prefix: everywhere}, protocol)))
		},
		"another address": func(g *ground, _ *os.File, c *kernel.Conn) {
			l, err := c.LinkByName(device)
			check(g.t, err)
			a := netip.MustParseAddr("192.0.2.99")
			check(g.t, c.AddAddress(kernel.Address{Index: l.Index, Local: a, Reach: single(a)}))
		},
		"a new address of the host": func(g *ground, _ *os.File, _ *kernel.Conn) {
			l, err := g.home.LinkByName("out0")
			check(g.t, err)
			a := netip.MustParseAddr("198.51.100.7")
			check(g.t, g.home.AddAddress(kernel.Address{Index: l.Index, Local: a, Reach: single(a)}))
		},
		"the namespace is new": func(g *ground, ns *os.File, c *kernel.Conn) {
			ns.Close() // or the old one lives, and its device
			c.Close()
			check(g.t, kernel.Unbind(g.host.Path(gate.Key())))
			g.namespace(g.host.Path(gate.Key()))
		},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGround(t)
			g.do(plan.Add, gate)
			ns, c := g.inside()
			damage(g, ns, c)
			if have := g.observed(); reflect.DeepEqual(have, []plan.Gateway{gate}) {
				t.Error("the damage was not seen")
			}
			stall.Wait(t, 5*time.Second, 10*time.Millisecond, func() error { // a namespace takes a while to end, and its device with it
				return g.part.Do(context.Background(), plan.Step{Op: plan.Set, Item: gate})
			})
			if have := g.observed(); !reflect.DeepEqual(have, []plan.Gateway{gate}) {
				t.Errorf("observed %v\nmade     %v", have, gate)
			}
		})
	}
}

// An interface that is not there is said, and nothing is open without it.
func TestMissingInterface(t *testing.T) {
	g := newGround(t)
	missing := gate
	missing.Interface = "none"
	err := g.part.Do(context.Background(), plan.Step{Op: plan.Add, Item: missing})
	if err == nil {
		t.Fatal("a way out by an interface that is not there was made")
	}
	if have := g.observed(); len(have) != 1 || have[0].Address.IsValid() {
		t.Errorf("observed %v: want one without an address", have)
	}
}
