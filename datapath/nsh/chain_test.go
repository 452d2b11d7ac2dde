package nsh

import (
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sublet/datapath/kernel"
)

const (
	there uint32 = 0x070001 // a to b
	back  uint32 = 0x070002
)

// planes is a chain from a to b by a firewall on h1 and others on h2, and one back.
func (g *testGround) planes(onH2 ...Function) (p1, p2 Plane) {
	p1 = Plane{
		Fabric: fabric, Interface: "up0", Local: netip.MustParseAddr("10.9.0.1"),
		Classifiers: []Classifier{{Port: "la0", Rules: []Rule{{Path: there, Index: 255}}}},
		Functions:   []Function{{Name: "fw", Kind: Firewall, Rules: []FirewallRule{{Match: Match{Proto: 6, DstPorts: Ports{23, 23}}, Deny: true}}}},
		Remotes:     []Remote{{Name: "h2", Address: netip.MustParseAddr("10.9.0.2")}},
		Hops: []Hop{
			{Path: there, Index: 255, Function: "fw"}, {Path: there, Index: 254, Remote: "h2"},
			{Path: back, Index: uint8(255 - len(onH2)), Egress: &Egress{Port: "la0"}},
		},
	}
	p2 = Plane{
		Fabric: fabric, Interface: "up0", Local: netip.MustParseAddr("10.9.0.2"),
		Classifiers: []Classifier{{Port: "lb0", Rules: []Rule{{Path: back, Index: 255}}}},
		Remotes:     []Remote{{Name: "h1", Address: netip.MustParseAddr("10.9.0.1")}},
	}
	p2.Functions = onH2
	index := uint8(254)
	for _, f := range onH2 {
		p2.Hops = append(p2.Hops, Hop{Path: there, Index: index, Function: f.Name})
		index--
	}
	p2.Hops = append(p2.Hops, Hop{Path: there, Index: index, Egress: &Egress{Port: "lb0"}})
	index = 255
	for i := range onH2 {
		p2.Hops = append(p2.Hops, Hop{Path: back, Index: index, Function: onH2[len(onH2)-1-i].Name, Reverse: true})
		index--
	}
	p2.Hops = append(p2.Hops, Hop{Path: back, Index: index, Remote: "h1"})
	return p1, p2
}

func (g *testGround) set(p1, p2 Plane) {
	g.t.Helper()
	check(g.t, g.h2.part.Set(p2))
	check(g.t, g.h1.part.Set(p1))
}

// A chain over two hosts carries both families and large segments, and is observed
// as it was set; another agent's part finds it so, and packets go on meanwhile.
func TestChainOverTwoHosts(t *testing.T) {
	g := newGround(t)
	p1, p2 := g.planes(Function{Name: "nothing", Kind: None})
	g.set(p1, p2)
	for _, to := range []string{"192.168.7.2", "fd00:7::2"} {
		if !g.pings(g.a, to) {
			t.Errorf("no answer of %s: h1 %v, h2 %v", to, g.report(g.h1), g.report(g.h2))
		}
	}
	if c := g.h2.hop(t, there, 254); c.Packets < 2 || c.Bytes < 2*98 {
		t.Errorf("the function counted %+v", c)
	}
	if !g.pings(g.a, "192.168.7.2", "-M", "do", "-s", "1422") {
		t.Error("1450 bytes do not pass")
	}
	g.h1.part.Close()
	if !g.pings(g.a, "192.168.7.2") {
		t.Error("no agent, no answer")
	}
	for _, h := range []struct {
		testHost
		want Plane
	}{{g.h1, p1}, {g.h2, p2}} {
		have, err := New(h.Host).Planes()
		check(t, err)
		if len(have) != 1 || !reflect.DeepEqual(have[0], h.want) {
			t.Errorf("%s is observed as %+v", h.Config.Host, have)
		}
	}
	g.in(g.h1.Path(fabric), "ip link set chain down")
	if have, err := g.h1.part.Planes(); err != nil || len(have) != 1 || have[0].Interface != "" {
		t.Errorf("a device that is down is not seen: %+v, %v", have, err)
	}
	check(t, g.h1.part.Set(p1))
	if !g.pings(g.a, "192.168.7.2") {
		t.Error("no answer once mended")
	}
}

func (g *testGround) report(h testHost) Report {
	r, err := h.part.Report(fabric)
	check(g.t, err)
	return r
}

// What is too big for the path to the next host is answered with what fits.
func TestTooBigIsTold(t *testing.T) {
	g := newGround(t)
	p1, p2 := g.planes()
	p1.Remotes[0].MTU = 1340
	g.set(p1, p2)
	for _, c := range []struct{ to, largest, larger string }{{"192.168.7.2", "1262", "1263"}, {"fd00:7::2", "1242", "1243"}} {
		if !g.pings(g.a, c.to, "-M", "do", "-s", c.largest) {
			t.Errorf("1290 bytes to %s do not pass", c.to)
		}
		if g.pings(g.a, c.to, "-M", "do", "-s", c.larger) {
			t.Errorf("1291 bytes to %s pass", c.to)
		}
		if route := g.in(g.a, "ip route get "+c.to); !strings.Contains(route, "mtu 1290") {
			t.Errorf("a did not learn of 1290 bytes: %s", route)
		}
	}
	if c := g.h1.hop(t, there, 254); c.Drops["too-big"] < 2 {
		t.Errorf("counted are %+v", c)
	}
}

// A function comes into a running chain and goes out of it without a packet lost,
// and nothing is left of it.
func TestFunctionComesAndGoes(t *testing.T) {
	g := newGround(t)
	other := Plane{Fabric: "bob-other", Functions: []Function{{Name: "x", Kind: None}}, Hops: []Hop{{Path: 5, Index: 1, Function: "x"}}}
	check(t, g.h2.MakeSilent(other.Fabric))
	t.Cleanup(func() {
		check(t, g.h2.part.Delete(other.Fabric))
		kernel.Unbind(g.h2.Path(other.Fabric))
	})
	check(t, g.h2.part.Set(other))
	long1, long2 := g.planes(Function{Name: "nat", Kind: NAT, Prefix: netip.MustParsePrefix("198.51.100.8/30")}, Function{Name: "fw", Kind: Firewall},
		Function{Name: "ids", Kind: Node, In: "fi0", Out: "fo0"}, Function{Name: "slow", Kind: Limit, Rate: 8e9})
	check(t, g.h2.part.Set(long2))
	tables, err := g.h2.part.tables()
	check(t, err)
	short1, short2 := g.planes()
	g.set(short1, short2)
	for _, name := range []string{"sides", "firewalls", "nats", "limits", "conns", "memories", "balancers"} {
		if all, err := read[uint32, []byte](tables.table(name)); err != nil || len(all) != 0 {
			t.Errorf("%s still has %d rows, %v", name, len(all), err)
		}
	}
	if hops, err := read[uint32, nshHop](tables.table("hops")); err != nil || len(hops) != 3 {
		t.Errorf("hops are %v, %v", hops, err)
	}
	_, longer := g.planes(Function{Name: "one", Kind: None}, Function{Name: "two", Kind: None})
	longer.Hops = slices.DeleteFunc(longer.Hops, func(h Hop) bool { return h.Path == back })
	longer.Hops = append(longer.Hops, Hop{Path: back, Index: 255, Remote: "h1"})
	if !g.pings(g.a, "192.168.7.2") {
		t.Fatal("no answer")
	}
	ping := g.command(g.a, "ping -n -q -i 0.002 -c 600 192.168.7.2")
	var out strings.Builder
	ping.Stdout = &out
	check(t, ping.Start())
	done := make(chan error, 1)
	go func() { done <- ping.Wait() }()
	for changes := 0; ; changes++ {
		check(t, g.h2.part.Set([]Plane{longer, short2}[changes%2]))
		select {
		case err := <-done:
			// ping does not wait long for its last packets; what found no row is counted.
			loss := regexp.MustCompile(` ([012])(\.\d+)?% packet loss`)
			if drops := g.h2.drops(t); err != nil || !loss.MatchString(out.String()) || changes < 2 || drops["wrong-index"] > 0 {
				t.Errorf("with %d changes, %v, dropped are %v: %s", changes, err, drops, out.String())
			}
			g.deleted(other, long1)
			return
		default:
		}
	}
}

// deleted takes the plane of h2 away and looks for what is left beside another's.
func (g *testGround) deleted(other, p1 Plane) {
	g.t.Helper()
	check(g.t, g.h2.part.Delete(fabric))
	check(g.t, g.h2.part.Delete(fabric))
	if links := g.in(g.h2.home, "ip -o link") + g.in(g.h2.Path(fabric), "ip -o link"); strings.Contains(links, "chain") || strings.Contains(links, "sc") && strings.Contains(links, homeDevice(fabric)) {
		g.t.Errorf("devices are left: %s", links)
	}
	all, err := g.h2.part.Planes()
	check(g.t, err)
	if len(all) != 1 || !reflect.DeepEqual(all[0], other) {
		g.t.Errorf("the other plane is %+v", all)
	}
	tables, err := g.h2.part.tables()
	check(g.t, err)
	for name, want := range map[string]int{"hops": 1, "paths": 1, "planes": 1, "senders": 0, "locals": 0, "uplinks": 0, "remotes": 0, "classifiers": 0} {
		rows := 0
		key, value := make([]byte, tables.table(name).KeySize()), make([]byte, tables.table(name).ValueSize())
		for all := tables.table(name).Iterate(); all.Next(&key, &value); {
			rows++
		}
		if rows != want {
			g.t.Errorf("%s has %d rows, not %d", name, rows, want)
		}
	}
}

// What cannot be is refused in one line, and changes nothing.
func TestPlanesThatAreRefused(t *testing.T) {
	right := func() Plane {
		return Plane{Fabric: "f", Interface: "e", Local: netip.MustParseAddr("10.0.0.1"),
			Functions: []Function{{Name: "fw", Kind: Firewall}}, Remotes: []Remote{{Name: "h", Address: netip.MustParseAddr("10.0.0.2")}},
			Hops: []Hop{{Path: 1, Index: 9, Function: "fw"}}, Classifiers: []Classifier{{Port: "p", Rules: []Rule{{Path: 1, Index: 9}}}}}
	}
	check(t, Check(right()))
	vlan, dscp := uint16(4095), uint8(64)
	for name, change := range map[string]func(*Plane){
		"no fabric":          func(p *Plane) { p.Fabric = "" },
		"fabric elsewhere":   func(p *Plane) { p.Fabric = "../f" },
		"no interface":       func(p *Plane) { p.Interface = "" },
		"family":             func(p *Plane) { p.Remotes[0].Address = netip.MustParseAddr("fd00::1") },
		"transport":          func(p *Plane) { p.Remotes[0].Transport = "tcp" },
		"two functions":      func(p *Plane) { p.Functions = append(p.Functions, p.Functions[0]) },
		"kind":               func(p *Plane) { p.Functions[0].Kind = "magic" },
		"aware":              func(p *Plane) { p.Functions[0].Kind = Aware },
		"one interface":      func(p *Plane) { p.Functions[0] = Function{Name: "fw", Kind: Node, In: "x", Out: "x"} },
		"rate":               func(p *Plane) { p.Functions[0] = Function{Name: "fw", Kind: Limit} },
		"NAT without prefix": func(p *Plane) { p.Functions[0] = Function{Name: "fw", Kind: NAT} },
		"flows": func(p *Plane) {
			p.Functions[0] = Function{Name: "fw", Kind: NAT, Prefix: netip.MustParsePrefix("10.0.0.0/24"), Flows: 1 << 30}
		},
		"too many rules":   func(p *Plane) { p.Classifiers[0].Rules = make([]Rule, MaxRules+1) },
		"path 0":           func(p *Plane) { p.Hops[0].Path = 0 },
		"index 0":          func(p *Plane) { p.Hops[0].Index = 0 },
		"two rows":         func(p *Plane) { p.Hops = append(p.Hops, p.Hops[0]) },
		"two ways":         func(p *Plane) { p.Hops[0].Remote = "h" },
		"unknown function": func(p *Plane) { p.Hops[0].Function = "nobody" },
		"VLAN":             func(p *Plane) { p.Classifiers[0].Rules[0].Match.VLAN = &vlan },
		"DSCP":             func(p *Plane) { p.Classifiers[0].Rules[0].Match.DSCP = &dscp },
		"metadata":         func(p *Plane) { p.Metadata = []Metadata{{Path: 1, Type: 1, Bytes: []byte{1}}} },
		"port twice":       func(p *Plane) { p.Functions[0] = Function{Name: "fw", Kind: Node, In: "p", Out: "q"} },
	} {
		t.Run(name, func(t *testing.T) {
			p := right()
			change(&p)
			if err := Check(p); err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("checked: %v", err)
			}
		})
	}
}
