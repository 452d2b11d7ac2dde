package vxrouter

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"sublet/plan"
	"sublet/vnet"
)

// TestClassesAreRouted: packets of a class go by its table, others by main, those of
// the class too that its table does not know; what is read back is what was planned;
// rules and routes of a class that are missing, or too many, are seen and mended, the
// tenant's own stay, and nothing is left.
func TestClassesAreRouted(t *testing.T) {
	b := newBench(t)
	r := b.node("r")
	for i, far := range []string{"10.0.1.2", "10.0.2.2"} {
		n := b.node([]string{"n1", "n2"}[i])
		b.join(r, []string{"eth0", "eth1"}[i], "10.0.0.1", n, "eth0", far)
	}
	mid := router("r")
	mid.Forward = true
	mid.Routes = []plan.Route{route("10.9.0.0/16", "10.0.1.2", "eth0"), route("10.10.0.0/16", "10.0.1.2", "eth0")}
	mid.Classes = []plan.RouteClass{
		{Match: []plan.ChainMatch{
			{Protocol: vnet.ProtocolTCP, DstPorts: [2]uint16{80, 81}}, {Protocol: vnet.ProtocolTCP, SrcPorts: [2]uint16{80, 81}},
		}, Routes: []plan.Route{route("10.9.0.0/16", "10.0.2.2", "eth1")}},
		{Match: []plan.ChainMatch{{Protocol: vnet.ProtocolICMP, Src: netip.MustParsePrefix("10.7.0.0/16")}}, Routes: []plan.Route{route("10.10.0.0/16", "10.0.2.2", "eth1")}},
	}
	for range 2 {
		b.do(plan.Add, mid)
		b.has(mid)
	}
	way := func(args ...string) string {
		return b.ip(r, append([]string{"route", "get"}, args...)...)
	}
	tcp := []string{"ipproto", "tcp", "dport", "81"}
	if out := way(append([]string{"10.9.0.1"}, tcp...)...); !strings.Contains(out, "dev eth1") {
		t.Errorf("the class goes by %s", out)
	}
	if out := way("10.9.0.1", "ipproto", "tcp", "sport", "80", "dport", "1234"); !strings.Contains(out, "dev eth1") {
		t.Errorf("answers of the class go by %s", out)
	}
	for _, out := range []string{way("10.9.0.1"), way("10.9.0.1", "ipproto", "udp", "dport", "81"), way(append([]string{"10.10.0.1"}, tcp...)...)} {
		if !strings.Contains(out, "dev eth0") {
			t.Errorf("others go by %s", out)
		}
	}

	b.ip(r, "rule", "add", "pref", "5", "from", "10.99.0.0/16", "lookup", "main") // the tenant's own
	b.has(mid)
	for _, spoil := range [][]string{
		{"rule", "del", "pref", "15501"}, {"-6", "rule", "del", "pref", "15500"}, {"route", "flush", "table", "15500"},
		{"rule", "add", "pref", "15509", "lookup", "main", "protocol", "155"},
	} {
		b.ip(r, spoil...)
		if have := b.observed(); plan.Equal(have, mid) {
			t.Errorf("after %v it is said to be as planned", spoil)
		}
		b.do(plan.Set, mid)
		b.has(mid)
	}
	mid.Classes = nil
	b.do(plan.Set, mid)
	b.has(mid)
	out, _ := exec.Command("nsenter", "--net="+b.host.Path(r), "ip", "-4", "rule").CombinedOutput()
	if rules := string(out); !strings.Contains(rules, "10.99.0.0") || strings.Contains(rules, "155") {
		t.Errorf("rules left are %s", rules)
	}
}

// observed is the one router that there is.
func (b *bench) observed() plan.Item {
	b.Helper()
	var have plan.Host
	b.check(b.part.Observe(b.Context(), &have))
	list := plan.Of[plan.VxRouter](have)
	if len(list) != 1 {
		b.Fatalf("observed %v", list)
	}
	list[0].Inside = nil
	return list[0]
}
