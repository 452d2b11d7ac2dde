package plan

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sublet/vnet"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name + ".txt"
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./plan -rewrite accepts it)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// three hosts in a row, the middle one reached through a switch on one side:
//
//	h1 --a-- s1 --b-- h2 --c-- h3
var substrate = vnet.Substrate{
	Hosts:    []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2"}, {Name: "h3"}},
	Switches: []string{"s1"},
	Links: []vnet.SubstrateLink{
		{Name: "a", Ends: [2]string{"h1", "s1"}, Capacity: 2 * vnet.Gbit, Share: 50, Ports: [2]vnet.Port{port("up0", "198.18.0.0"), {}}},
		{Name: "b", Ends: [2]string{"s1", "h2"}, Capacity: 2 * vnet.Gbit, Ports: [2]vnet.Port{{}, port("up0", "198.18.0.3")}},
		{Name: "c", Ends: [2]string{"h2", "h3"}, Capacity: 1 * vnet.Gbit, MTU: 1400, Ports: [2]vnet.Port{port("up1", "198.18.0.4"), port("up0", "198.18.0.5")}},
	},
}

func port(device, addr string) vnet.Port {
	return vnet.Port{Interface: device, Address: netip.MustParseAddr(addr)}
}

// triangle is n1 on h1, router r1 on h2 and n2 on h3, and n3 beside n1.
func triangle() vnet.Lease {
	link := func(name, a, b string, forward, reverse vnet.Bandwidth) vnet.VirtualLink {
		return vnet.VirtualLink{Name: name, Ends: [2]string{a, b}, Bandwidth: [2]vnet.Bandwidth{forward, reverse}}
	}
	static := vnet.Static(100 * vnet.Mbit)
	return vnet.Lease{
		Request: vnet.Request{
			Network: "net", Tenant: "alice",
			Topology: vnet.Topology{
				Nodes:   []vnet.VirtualNode{{Name: "n1", CPU: 500, Memory: 1000}, {Name: "n2"}, {Name: "n3"}},
				Routers: []vnet.VirtualNode{{Name: "r1", Protocol: vnet.ProtocolStatic}, {Name: "r2", Protocol: vnet.ProtocolOSPF}},
				Links: []vnet.VirtualLink{
					link("n1-r1", "n1", "r1", vnet.Bandwidth{Min: 10 * vnet.Mbit, Max: 200 * vnet.Mbit}, static),
					link("n2-r1", "n2", "r1", static, vnet.Bandwidth{}),
					link("n1-n3", "n1", "n3", static, static),
					link("far", "n1", "n2", static, static),
					link("r1-r2", "r1", "r2", static, vnet.Bandwidth{}),
				},
			},
		},
		Owner: 1000, State: vnet.Running, Stage: -1,
		Mapping: vnet.Mapping{
			Nodes: map[string]vnet.HostID{"n1": "h1", "n3": "h1", "r1": "h2", "r2": "h2", "n2": "h3"},
			Links: map[string]vnet.Path{"n1-r1": {"a", "b"}, "n2-r1": {"c"}, "n1-n3": {}, "far": {"a", "b", "c"}, "r1-r2": {}},
		},
		Addresses: map[string]netip.Addr{
			"n1": netip.MustParseAddr("10.0.0.1"), "n2": netip.MustParseAddr("10.0.0.2"), "n3": netip.MustParseAddr("10.0.0.3"),
			"r1": netip.MustParseAddr("10.0.0.4"), "r2": netip.MustParseAddr("10.0.0.5"),
		},
		VNIs: map[string][]vnet.VNI{"n1-r1": {1}, "n2-r1": {2}, "far": {3, 4}},
		Rates: map[string][2]vnet.Rate{
			"n1-r1": {200*vnet.Mbit + 3, 100 * vnet.Mbit}, "n2-r1": {100 * vnet.Mbit, 0},
			"n1-n3": {100 * vnet.Mbit, 100 * vnet.Mbit}, "far": {100 * vnet.Mbit, 100 * vnet.Mbit},
			"r1-r2": {100 * vnet.Mbit, 0},
		},
	}
}

func TestCompile(t *testing.T) {
	plans, err := Compile(substrate, []vnet.Lease{triangle()})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, h := range substrate.Hosts {
		b.WriteString("host " + string(h.Name) + "\n" + plans[h.Name].String())
	}
	golden(t, "compile", b.String())
}

func TestCompileRefusesWrongMappings(t *testing.T) {
	for name, breakIt := range map[string]func(*vnet.Lease){
		"unknown host":    func(l *vnet.Lease) { l.Mapping.Nodes["n1"] = "h9" },
		"ends in switch":  func(l *vnet.Lease) { l.Mapping.Links["n1-r1"] = vnet.Path{"a"} },
		"wrong end":       func(l *vnet.Lease) { l.Mapping.Links["n1-r1"] = vnet.Path{"a", "b", "c"} },
		"unknown link":    func(l *vnet.Lease) { l.Mapping.Links["n1-r1"] = vnet.Path{"z"} },
		"too few tunnels": func(l *vnet.Lease) { l.VNIs["far"] = []vnet.VNI{3} },
	} {
		l := triangle()
		breakIt(&l)
		if _, err := Compile(substrate, []vnet.Lease{l}); err == nil {
			t.Errorf("%s: compiled", name)
		}
	}
}

func steps(list []Step) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString(s.String() + "\n")
	}
	return b.String()
}

func TestDiff(t *testing.T) {
	before, err := Compile(substrate, []vnet.Lease{triangle()})
	if err != nil {
		t.Fatal(err)
	}
	l := triangle()
	l.Rates["n1-r1"] = [2]vnet.Rate{50 * vnet.Mbit, 150 * vnet.Mbit} // one way shrinks, the other grows
	l.Request.Stages = []vnet.Stage{{Name: "later", Remove: []string{"n3"}}}
	l.Stage = 0
	after, err := Compile(substrate, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "diff", steps(Diff(after["h1"], before["h1"])))
	golden(t, "create", steps(Diff(before["h1"], Host{Host: "h1"})))
	golden(t, "destroy", steps(Diff(Host{Host: "h1"}, before["h1"])))
}

// randomLease varies the rates and the presence of the parts of triangle.
func randomLease(t *rapid.T) vnet.Lease {
	l := triangle()
	rate := rapid.Int64Range(1e6, 1e9)
	l.Stage = 0
	l.Request.Stages = []vnet.Stage{{Name: "later"}}
	for _, link := range l.Request.Links {
		if rapid.Bool().Draw(t, "remove") {
			l.Request.Stages[0].Remove = append(l.Request.Stages[0].Remove, link.Name)
		}
		l.Rates[link.Name] = [2]vnet.Rate{vnet.Rate(rate.Draw(t, "forward")), vnet.Rate(rate.Draw(t, "reverse"))}
	}
	return l
}

// apply does steps on data, as an agent does them on a kernel.
func apply(h Host, list []Step) Host {
	items := index(h)
	for _, s := range list {
		if s.Op == Delete {
			delete(items, id(s.Item))
		} else {
			items[id(s.Item)] = s.Item
		}
	}
	result := Host{Host: h.Host}
	for _, item := range items {
		result.Add(item)
	}
	return result
}

func total(h Host) (sum vnet.Rate) {
	for _, l := range Of[VxLink](h) {
		for _, e := range l.Ends {
			sum += e.Rate
		}
	}
	return sum
}

func TestDiffReachesThePlanWithoutOverbooking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := Compile(substrate, []vnet.Lease{randomLease(t)})
		if err != nil {
			t.Fatal(err)
		}
		b, err := Compile(substrate, []vnet.Lease{randomLease(t)})
		if err != nil {
			t.Fatal(err)
		}
		have, want := a["h1"], b["h1"]
		list := Diff(want, have)
		most := max(total(have), total(want))
		for i := range list {
			if at := apply(have, list[:i]); total(at) > most {
				t.Fatalf("after %d steps of\n%s\nrates add up to %s, more than before and after", i, steps(list), total(at))
			}
		}
		end := apply(have, list)
		if end.String() != want.String() {
			t.Fatalf("steps\n%s\nlead to\n%s\nnot to\n%s", steps(list), end, want)
		}
		if rest := Diff(want, end); len(rest) != 0 {
			t.Fatalf("a second diff is not empty:\n%s", steps(rest))
		}
	})
}

// Trunks of different leases have different names that a device may bear.
func TestTrunk(t *testing.T) {
	seen := make(map[string]bool)
	for _, tenant := range []vnet.TenantID{"a", "b"} {
		for i := range 1000 {
			name := Trunk(vnet.LeaseID{Tenant: tenant, Network: vnet.VNetID(fmt.Sprintf("n%d", i))})
			if len(name) != 15 || !strings.HasPrefix(name, "sl") || seen[name] {
				t.Fatalf("trunk %q", name)
			}
			seen[name] = true
		}
	}
}
