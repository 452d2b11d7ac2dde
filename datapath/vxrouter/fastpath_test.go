package vxrouter

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sublet/plan"
	"sublet/report"
)

// pinned lists the routers of which pins are left.
func (b *bench) pinned() (keys []string) {
	names, err := b.host.Names("bpf")
	b.check(err)
	for _, name := range names {
		if key, ours := strings.CutPrefix(name, pinsPrefix); ours {
			keys = append(keys, strings.ReplaceAll(key, ":", "."))
		}
	}
	return keys
}

// crossing is n0 and n1 with router r between them.
func crossing(b *bench) (r plan.VxRouter, n0, n1 string) {
	n0, n1 = b.node("n0"), b.node("n1")
	key := b.node("r")
	b.join(key, "eth0", "10.0.0.1", n0, "eth0", "10.0.0.2")
	b.join(key, "eth1", "10.0.0.1", n1, "eth0", "10.0.0.3")
	b.ip(n0, "route", "add", "default", "via", "10.0.0.1")
	b.ip(n1, "route", "add", "default", "via", "10.0.0.1")
	r = router("r")
	r.Forward = true
	b.do(plan.Add, r)
	b.poll("an answer", func() bool { return b.pings(n0, "10.0.0.3") })
	return r, n0, n1
}

// path is what a router tells of itself.
func (b *bench) path(r plan.VxRouter) report.Forwarding {
	b.Helper()
	samples, err := b.part.Samples(b.Context(), report.Scope{})
	b.check(err)
	for _, p := range report.Forwardings(samples) {
		if p.Of == r.Key() {
			return p
		}
	}
	return report.Forwarding{Why: "not followed"}
}

// isFast says whether pings between two nodes go the fast path now.
func (b *bench) isFast(r plan.VxRouter, from, to string) bool {
	before := b.path(r).Packets
	return b.pings(from, to) && b.path(r).Packets >= before+2
}

func (b *bench) sysctl(key, setting string) {
	b.Helper()
	b.inside(key, "sysctl", "-qw", setting)
}

// inside runs a command in a namespace.
func (b *bench) inside(key string, argv ...string) {
	b.Helper()
	out, err := exec.Command("nsenter", append([]string{"--net=" + b.host.Path(key)}, argv...)...).CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %v %s", argv, err, out)
	}
}

func TestShortWay(t *testing.T) {
	b := newBench(t)
	r, n0, _ := crossing(b)
	b.poll("the fast path", func() bool { return b.isFast(r, n0, "10.0.0.3") })
	if s := b.path(r); s.Why != "" {
		t.Errorf("off: %s", s.Why)
	}
	b.do(plan.Delete, r)
	if left := b.pinned(); len(left) != 0 {
		t.Errorf("pins left: %v", left)
	}
}

// What the fast path does not carry is the stack's from at most a second on,
// and the fast path comes back when it is gone.
func TestTenantsFeaturesFallBack(t *testing.T) {
	b := newBench(t)
	r, n0, _ := crossing(b)
	key := r.Key()
	for _, c := range []struct {
		name     string
		set, end func()
		why      string
	}{
		{"queue", func() { b.inside(key, "tc", "qdisc", "add", "dev", "eth1", "root", "pfifo") }, func() { b.inside(key, "tc", "qdisc", "del", "dev", "eth1", "root") }, "queue of its own (pfifo)"},
		{"filters", func() { b.inside(key, "tc", "qdisc", "add", "dev", "eth0", "clsact") }, func() { b.inside(key, "tc", "qdisc", "del", "dev", "eth0", "clsact") }, "tc filters"},
		{"rules", func() { b.ip(key, "rule", "add", "from", "10.0.0.2", "table", "main") }, func() { b.ip(key, "rule", "del", "from", "10.0.0.2", "table", "main") }, "rules"},
		{"reverse path", func() { b.sysctl(key, "net.ipv4.conf.eth0.rp_filter=1") }, func() { b.sysctl(key, "net.ipv4.conf.eth0.rp_filter=0") }, "rp_filter"},
		{"forwarding", func() { b.sysctl(key, "net.ipv4.conf.eth1.forwarding=0") }, func() { b.sysctl(key, "net.ipv4.conf.eth1.forwarding=1") }, "forwarding is off on eth1"},
		{"device on top", func() { b.ip(key, "link", "add", "link", "eth0", "name", "v0", "type", "macvlan") }, func() { b.ip(key, "link", "del", "v0") }, "on top"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.poll("the fast path", func() bool { return b.isFast(r, n0, "10.0.0.3") })
			c.set()
			b.poll("fall-back", func() bool { return strings.Contains(b.path(r).Why, c.why) })
			before := b.path(r).Packets
			_ = b.pings(n0, "10.0.0.3")
			if after := b.path(r).Packets; after != before {
				t.Errorf("%d packets went the fast path", after-before)
			}
			c.end()
			b.poll("return", func() bool { return b.path(r).Fast })
		})
	}
}

// A route that is gone, blackholed or leads elsewhere is not used from the
// moment the kernel has it: the agent need not even run.
func TestRoutesAreTheKernelsAtOnce(t *testing.T) {
	b := newBench(t)
	r, n0, n1 := crossing(b)
	b.ip(n1, "addr", "add", "10.9.0.1/32", "dev", "lo")
	b.ip(r.Key(), "route", "add", "10.9.0.0/16", "via", "10.0.0.3", "dev", "eth1", "onlink")
	b.poll("the fast path", func() bool { return b.isFast(r, n0, "10.9.0.1") })
	b.part.Close() // nobody follows now
	b.ip(r.Key(), "route", "add", "blackhole", "10.9.0.1/32")
	if b.pings(n0, "10.9.0.1") {
		t.Error("a blackholed address answers")
	}
	b.ip(r.Key(), "route", "del", "blackhole", "10.9.0.1/32")
	if !b.pings(n0, "10.9.0.1") {
		t.Error("without an agent the stack does not forward")
	}
	b.has(r) // an agent that comes back
	b.poll("the fast path", func() bool { return b.isFast(r, n0, "10.9.0.1") })
}

// macTo is the Ethernet address to which the fast path sends; "": none.
func (b *bench) macTo(r plan.VxRouter, address string) string {
	b.Helper()
	b.part.mu.Lock()
	defer b.part.mu.Unlock()
	var w fastpathNexthop
	a := netip.MustParseAddr(address)
	for _, t := range b.part.followed[r.Key()].copies {
		if t.bits == a.BitLen() && (t.fib.Lookup(key(netip.PrefixFrom(a, t.bits)), &w) != nil || w.Out == 0) {
			return ""
		}
	}
	return net.HardwareAddr(w.Macs[:6]).String()
}

// A neighbour that gets another address is followed within 50 ms (here a
// second: the machine is shared), and one that is gone is the stack's to find.
func TestNeighboursAreFollowed(t *testing.T) {
	b := newBench(t)
	r, n0, n1 := crossing(b)
	b.poll("the fast path", func() bool { return b.isFast(r, n0, "10.0.0.3") })
	const other = "02:00:00:00:00:99"
	b.ip(r.Key(), "neigh", "replace", "10.0.0.3", "dev", "eth1", "lladdr", other, "nud", "permanent")
	b.soon("the other address", func() bool { return b.macTo(r, "10.0.0.3") == other })
	b.ip(n1, "link", "set", "eth0", "down")
	b.ip(r.Key(), "neigh", "flush", "all", "nud", "permanent")
	b.soon("no address", func() bool { return b.macTo(r, "10.0.0.3") == "" })
	// On a starved machine a survey takes too long at times, which suspends it.
	b.poll("no reason to be off", func() bool { return b.path(r).Why == "" })
	b.ip(n1, "link", "set", "eth0", "up")
	b.ip(n1, "route", "add", "default", "via", "10.0.0.1")
	b.poll("the fast path", func() bool { return b.isFast(r, n0, "10.0.0.3") })
}

// soon is poll with less patience.
func (b *bench) soon(what string, done func() bool) {
	b.Helper()
	for end := time.Now().Add(time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("no %s within 1 s", what)
		}
	}
}

// Routes that come and go all the time never lead a packet astray: what
// arrives at the wrong node is counted there.
func TestRoutesFlap(t *testing.T) {
	b := newBench(t)
	r, n0, n1 := crossing(b)
	n2 := b.node("n2")
	b.join(r.Key(), "eth2", "10.0.0.1", n2, "eth0", "10.0.0.4")
	for _, n := range []string{n1, n2} {
		b.ip(n, "addr", "add", "10.9.0.1/32", "dev", "lo")
	}
	b.ip(n2, "route", "add", "default", "via", "10.0.0.1")
	for i := range 40 {
		via, dev, node := "10.0.0.3", "eth1", n1
		if i%2 == 1 {
			via, dev, node = "10.0.0.4", "eth2", n2
		}
		b.ip(r.Key(), "route", "replace", "10.9.0.1/32", "via", via, "dev", dev, "onlink")
		before := b.echoes(node)
		if !b.pings(n0, "10.9.0.1") {
			t.Fatalf("flap %d: no answer", i)
		}
		if after := b.echoes(node); after != before+1 {
			t.Fatalf("flap %d: the packet went elsewhere", i)
		}
	}
}

// echoes is how many pings a node has answered.
func (b *bench) echoes(key string) int {
	out, err := exec.Command("nsenter", "--net="+b.host.Path(key), "cat", "/proc/net/snmp").Output()
	b.check(err)
	var names []string
	for _, line := range strings.Split(string(out), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "Icmp:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		n, _ := strconv.Atoi(fields[slices.Index(names, "InEchos")])
		return n
	}
	return 0
}

// echoes6 is how many pings of IPv6 a node has answered.
func (b *bench) echoes6(key string) int {
	out, err := exec.Command("nsenter", "--net="+b.host.Path(key), "cat", "/proc/net/snmp6").Output()
	b.check(err)
	fields := strings.Fields(string(out))
	n, err := strconv.Atoi(fields[slices.Index(fields, "Icmp6InEchos")+1])
	b.check(err)
	return n
}

// Planned neighbours are entries that no table's limit counts, stay so while the fast path
// asks for them, and follow a tenant who changes the address of their interface.
func TestPlannedNeighboursAreOutsideOfTheTable(t *testing.T) {
	b := newBench(t)
	r, n0, n1 := crossing(b)
	mac := func(key string) (h plan.Hardware) {
		_, text, _ := strings.Cut(b.ip(key, "link", "show", "eth0"), "link/ether ")
		b.check(h.UnmarshalText([]byte(strings.Fields(text)[0])))
		return h
	}
	for i, key := range []string{n0, n1} {
		r.Neighbours = append(r.Neighbours, plan.Station{Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(2 + i)}), Hardware: mac(key), Interface: fmt.Sprint("eth", i)})
	}
	r.Neighbours = append(r.Neighbours, plan.Station{Address: netip.MustParseAddr("fd00::2"), Hardware: mac(n0), Interface: "eth0"})
	b.do(plan.Set, r)
	entries := func() string { return b.ip(r.Key(), "neigh", "show") }
	if said := entries(); strings.Count(said, "extern_learn") != 3 {
		t.Fatalf("entries are\n%s", said)
	}
	c, err := b.host.Dial(r.Key())
	b.check(err)
	defer c.Close()
	links, err := c.Links()
	b.check(err)
	for _, l := range links {
		if l.Name == "eth1" {
			b.check(c.UseNeighbour(netip.MustParseAddr("10.0.0.3"), l.Index))
		}
	}
	b.poll("the fast path", func() bool { return b.isFast(r, n0, "10.0.0.3") })
	b.ip(n1, "link", "set", "eth0", "address", "02:00:00:00:00:77")
	b.ip(n1, "route", "replace", "default", "via", "10.0.0.1")
	b.poll("the way with another address", func() bool { return b.pings(n1, "10.0.0.2") })
	if said := entries(); strings.Count(said, "extern_learn") != 3 || !strings.Contains(said, "10.0.0.3 dev eth1 lladdr 02:00:00:00:00:77 extern_learn") {
		t.Errorf("entries are\n%s", said)
	}
}
