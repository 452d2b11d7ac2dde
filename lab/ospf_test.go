package lab

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// diamond is h1 - s1 - s2, s3 - s4 - h2.
func diamond() vnet.Substrate {
	sub := hosts(2)
	sub.Switches = []string{"s1", "s2", "s3", "s4"}
	for _, l := range [][3]string{{"a1", "h1", "s1"}, {"b2", "s1", "s2"}, {"b3", "s1", "s3"}, {"c2", "s2", "s4"}, {"c3", "s3", "s4"}, {"a2", "s4", "h2"}} {
		join(&sub, l[0], l[1], l[2], vnet.Gbit)
	}
	return sub
}

func TestMeshed(t *testing.T) {
	for name, c := range map[string]struct {
		sub  vnet.Substrate
		want bool
	}{"no switch": {demo(), false}, "a star": {star(3), false}, "a line, and two links of a host": {twoSwitches(vnet.Gbit), false}, "a diamond": {diamond(), true}} {
		if got := Meshed(c.sub); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	parallel := twoSwitches(vnet.Gbit)
	join(&parallel, "second", "s1", "s2", vnet.Gbit)
	if !Meshed(parallel) {
		t.Error("two links between two switches are no choice")
	}
}

func TestWays(t *testing.T) {
	l, err := newLayout("lab", diamond())
	if err != nil {
		t.Fatal(err)
	}
	ways := l.nextHops()
	for _, c := range []struct {
		at, to string
		want   int
	}{{"s1", "h2", 2}, {"s1", "s4", 2}, {"s1", "s2", 1}, {"s2", "s3", 2}, {"s4", "h2", 1}, {"s2", "h1", 1}} {
		address, _ := Loopback(l.substrate, c.to)
		if got := ways[c.at][address]; got != c.want {
			t.Errorf("%s to %s: %d ways, want %d", c.at, c.to, got, c.want)
		}
	}
}

// A fabric with real FRR: switches forward over all shortest paths, take
// headers off, follow a cut, and nothing stays.
func TestOSPF(t *testing.T) {
	if !HasFRR() {
		t.Skip("FRR is not installed")
	}
	needRoot(t)
	spec := specOf(t, diamond())
	spec.OSPF = true
	l := upAs(t, spec)
	far, _ := Loopback(l.Substrate, "h2")
	if out, err := in(t, spec, "h1", "ping", "-q", "-c", "3", "-i", "0.1", "-W", "2", far.String()); err != nil {
		t.Errorf("h1 does not reach %s: %v\n%s", far, err, out)
	}
	if out, _ := in(t, spec, "h1", "ip", "route"); strings.Contains(out, "ospf") || !strings.Contains(out, "198.19.0.0/16") {
		t.Errorf("OSPF changes the routes of a host, or the one to loopbacks is missing:\n%s", out)
	}
	if out, _ := in(t, spec, "h1", "cat", "/proc/sys/net/ipv4/ip_forward"); strings.TrimSpace(out) != "0" {
		t.Error("a host forwards")
	}
	for _, via := range []string{"s2", "s3"} {
		relayOver(t, spec, l.Substrate, via, far)
	}
	cut(t, spec, l.Substrate, far)
}

// relayOver sends from h1 through one relay, and reads there that the header
// was taken off.
func relayOver(t *testing.T, spec Spec, sub vnet.Substrate, via string, far netip.Addr) {
	t.Helper()
	host, err := kernel.NewHost(kernel.Config{Host: "h1", Run: filepath.Join(dirOf(spec.Run), "test"), Namespace: filepath.Join(netnsDir, spec.Name+"-h1")})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	own, _ := Loopback(sub, "h1")
	relay, _ := Loopback(sub, via)
	table, err := iplb.Open(host, own)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if err := table.Set(plan.Spread{Prefix: netip.PrefixFrom(far, 32), Paths: []plan.RelayPath{{Relays: []netip.Addr{relay}}}}); err != nil {
		t.Fatal(err)
	}
	if err := table.Spread(host, "to-s1"); err != nil {
		t.Fatal(err)
	}
	before := relayed(t, spec, sub, via)
	if out, err := in(t, spec, "h1", "ping", "-q", "-c", "5", "-i", "0.1", "-W", "2", far.String()); err != nil {
		t.Errorf("through %s: %v\n%s", via, err, out)
	}
	if n := relayed(t, spec, sub, via) - before; n < 5 {
		t.Errorf("%s took headers off %d packets of 5", via, n)
	}
}

// relayed counts the packets off which a switch took a header.
func relayed(t *testing.T, spec Spec, sub vnet.Substrate, node string) uint64 {
	t.Helper()
	l := &layout{name: spec.Name, substrate: sub}
	host, err := l.relayHost(spec.Run, node)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	own, _ := Loopback(sub, node)
	table, err := iplb.Open(host, own)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	counts, err := table.Counts()
	if err != nil {
		t.Fatal(err)
	}
	return counts["relayed"]
}

// cut takes one of two ways away; what has only the other comes through.
func cut(t *testing.T, spec Spec, sub vnet.Substrate, far netip.Addr) {
	t.Helper()
	if err := SetWire(spec.Run, sub, "b2", Cut); err != nil {
		t.Fatal(err)
	}
	l, err := newLayout(spec.Name, sub)
	if err != nil {
		t.Fatal(err)
	}
	ways := func() int {
		_, c, err := openNamespace(l.namespace("s1"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		have, err := nextHops(c)
		if err != nil {
			t.Fatal(err)
		}
		return have[far]
	}
	waitFor(t, "one way to h2", func() bool { return ways() == 1 })
	if err := SetWire(spec.Run, sub, "b2", Whole); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "two ways to h2", func() bool { return ways() == 2 })
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s within a minute", what)
		}
	}
}
