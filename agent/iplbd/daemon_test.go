package iplbd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// diamond is namespaces a - s1 - {m1, m2} - s2 - b with fixed routes. The n-th
// wire is 10.1.N.0/30; the switches are 10.255.0.1 to .4 in the order s1, m1,
// m2, s2.
type diamond struct {
	t  *testing.T
	ns map[string]*os.File
}

var wires = [][2]string{{"a", "s1"}, {"s1", "m1"}, {"s1", "m2"}, {"m1", "s2"}, {"m2", "s2"}, {"s2", "b"}}

var routes = map[string][]string{
	"a":  {"default via 10.1.1.2"},
	"b":  {"default via 10.1.6.1"},
	"s1": {"10.255.0.2 via 10.1.2.2", "10.255.0.3 via 10.1.3.2", "10.255.0.4 via 10.1.2.2", "10.1.6.0/30 via 10.1.2.2"},
	"m1": {"10.1.6.0/30 via 10.1.4.2", "10.255.0.4 via 10.1.4.2", "10.1.1.0/30 via 10.1.2.1"},
	"m2": {"10.1.6.0/30 via 10.1.5.2", "10.255.0.4 via 10.1.5.2", "10.1.1.0/30 via 10.1.3.1"},
	"s2": {"10.255.0.2 via 10.1.4.1", "10.255.0.3 via 10.1.5.1", "10.1.1.0/30 via 10.1.4.1"},
}

func newDiamond(t *testing.T) *diamond {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	d := &diamond{t, make(map[string]*os.File)}
	for i, name := range []string{"s1", "m1", "m2", "s2", "a", "b"} {
		ns, err := kernel.NewNamespace(func() error { return kernel.Sysctl("ipv4/ip_forward", "1") })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ns.Close() })
		d.ns[name] = ns
		d.run(name, "ip link set lo up")
		if i < 4 {
			d.run(name, fmt.Sprintf("ip addr add 10.255.0.%d/32 dev lo", i+1))
		}
	}
	for i, w := range wires {
		d.wire(i+1, w[0], w[1])
	}
	for name, all := range routes {
		for _, r := range all {
			d.run(name, "ip route add "+r)
		}
	}
	return d
}

func (d *diamond) wire(n int, a, b string) {
	d.run(a, fmt.Sprintf("ip link add w%d type veth peer name new", n))
	d.run(a, fmt.Sprintf("ip link set new netns /proc/self/fd/3 name w%d", n), d.ns[b])
	for side, name := range []string{a, b} {
		d.run(name, fmt.Sprintf("ip addr add 10.1.%d.%d/30 dev w%d", n, side+1, n))
		d.run(name, fmt.Sprintf("ip link set w%d mtu 1600 up", n))
	}
}

func (d *diamond) run(name, command string, extra ...*os.File) {
	d.t.Helper()
	argv := strings.Fields(command)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.ExtraFiles = extra
	if err := kernel.In(d.ns[name], func() error {
		out, err := cmd.CombinedOutput()
		if err != nil {
			d.t.Logf("%s: %s: %s", name, command, out)
		}
		return err
	}); err != nil {
		d.t.Fatal(err)
	}
}

// host is a namespace as the table wants it.
func (d *diamond) host(name string) *kernel.Host {
	d.t.Helper()
	h, err := kernel.NewHost(kernel.Config{Host: name, Run: d.t.TempDir(), Namespace: fmt.Sprintf("/proc/self/fd/%d", d.ns[name].Fd())})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = iplb.Unpin(h); h.Close() })
	return h
}

func (d *diamond) table(h *kernel.Host, source string) *iplb.Table {
	d.t.Helper()
	t, err := iplb.Open(h, netip.MustParseAddr(source))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(t.Close)
	return t
}

// relays makes all switches take headers off.
func (d *diamond) relays() {
	d.t.Helper()
	all := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, name := range []string{"s1", "m1", "m2", "s2"} {
		h := d.host(name)
		t := d.table(h, "0.0.0.0")
		devices, addresses, err := iplb.Devices(h)
		if err == nil {
			err = t.SetRelaying(iplb.Relaying{Addresses: addresses, Senders: all, Inside: all})
		}
		for _, device := range devices {
			if err == nil {
				err = t.TakeOff(h, device)
			}
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

// start runs a daemon on a.
func (d *diamond) start(spreads []plan.Spread, change func(*Daemon)) (*Daemon, context.Context) {
	d.t.Helper()
	h := d.host("a")
	table := d.table(h, "10.1.1.1")
	daemon := New("a", table, slog.New(slog.NewTextHandler(io.Discard, nil)))
	prober, err := iplb.NewProber(h, "w1")
	if err != nil {
		d.t.Fatal(err)
	}
	daemon.Probing = Probing{Every: 40 * time.Millisecond, Lost: 25, Send: prober.Send}
	change(daemon)
	daemon.Apply(spreads)
	if err := table.Spread(h, "w1"); err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { daemon.Run(ctx) })
	d.t.Cleanup(func() { cancel(); done.Wait(); prober.Close() })
	return daemon, ctx
}

// flows sends datagrams of some sizes from a to b, in turn, until stopped.
func (d *diamond) flows(sizes []int) (stop func()) {
	d.t.Helper()
	var conns []net.Conn
	if err := kernel.In(d.ns["a"], func() error {
		for range sizes {
			c, err := net.Dial("udp4", "10.1.6.2:9")
			if err != nil {
				return err
			}
			conns = append(conns, c)
		}
		return nil
	}); err != nil {
		d.t.Fatal(err)
	}
	end := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			for i, c := range conns {
				_, _ = c.Write(make([]byte, sizes[i])) // refused: nobody listens, which is fine
			}
			select {
			case <-end:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	return func() { close(end); done.Wait() }
}

func spreadOfTwo() plan.Spread {
	s := plan.Spread{Prefix: netip.MustParsePrefix("10.1.6.0/30"), Mode: plan.PerFlow}
	for _, relay := range []string{"10.255.0.2", "10.255.0.3"} {
		s.Paths = append(s.Paths, plan.RelayPath{Relays: []netip.Addr{netip.MustParseAddr(relay)}, Turn: netip.MustParseAddr("10.255.0.4")})
	}
	return s
}

// until polls the daemon for something that must come true.
func until(t *testing.T, ctx context.Context, d *Daemon, what string, holds func(PrefixStatus, Status) bool) (PrefixStatus, Status) {
	t.Helper()
	var s Status
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var err error
		if s, err = d.Ask(ctx); err != nil {
			t.Fatal(err)
		}
		if len(s.Prefixes) > 0 && holds(s.Prefixes[0], s) {
			return s.Prefixes[0], s
		}
	}
	t.Fatalf("%s: not after 30 s: %+v", what, s)
	return PrefixStatus{}, s
}

// What one switch swallows silently leaves it; the other path's flows do not
// move, and when it is mended nothing goes back by itself.
func TestSilentLossIsLeft(t *testing.T) {
	d := newDiamond(t)
	d.relays()
	daemon, ctx := d.start([]plan.Spread{spreadOfTwo()}, func(d *Daemon) { d.Rearrange = 0 })
	defer d.flows(make([]int, 16))()
	before, _ := until(t, ctx, daemon, "probes return and both paths carry flows", func(p PrefixStatus, s Status) bool {
		return s.Outcomes["echoed"] > 4 && p.Paths[0].Flows > 0 && p.Paths[1].Flows > 0 && p.Paths[0].Flows+p.Paths[1].Flows == 16
	})
	d.run("m1", "ip rule add pref 1 iif w2 blackhole")
	dead, _ := until(t, ctx, daemon, "the path is found dead", func(p PrefixStatus, _ Status) bool {
		return p.Paths[0].Health == Down && p.Paths[0].Flows == 0
	})
	if dead.Paths[1].Health != Up || dead.Paths[1].Flows != 16 {
		t.Errorf("of 16 flows, %d on the other path before, are now %+v", before.Paths[1].Flows, dead.Paths)
	}
	d.run("m1", "ip rule del pref 1")
	_, s := until(t, ctx, daemon, "the path is alive", func(p PrefixStatus, _ Status) bool { return p.Paths[0].Health == Up })
	for _, p := range s.Prefixes[0].Paths {
		if p.Flows > 0 && p.Relays[0].String() != "10.255.0.3" {
			t.Errorf("%d flows went back", p.Flows)
		}
	}
	if s.Moved != 2 {
		t.Errorf("moves: %+v", s.Moves)
	}
	if s.Outcomes["drop-forged"] != 0 || s.Outcomes["native"] != 0 {
		t.Errorf("outcomes: %v", s.Outcomes)
	}
}

// Flows of unlike size are rearranged until the paths carry the like, and then
// stay.
func TestFlowsAreEvened(t *testing.T) {
	d := newDiamond(t)
	d.relays()
	daemon, ctx := d.start([]plan.Spread{spreadOfTwo()}, func(d *Daemon) { d.Rearrange = 100 * time.Millisecond })
	defer d.flows([]int{1400, 1000, 700, 600, 400, 300, 200, 200, 100, 100})()
	last := Status{}
	until(t, ctx, daemon, "the paths carry the like", func(p PrefixStatus, s Status) bool {
		if len(last.Prefixes) == 0 {
			last = s
			return false
		}
		a := float64(p.Paths[0].Bytes - last.Prefixes[0].Paths[0].Bytes)
		b := float64(p.Paths[1].Bytes - last.Prefixes[0].Paths[1].Bytes)
		if a+b < 200e3 {
			return false
		}
		last = s
		return a > 0.42*(a+b) && b > 0.42*(a+b)
	})
	_, err := daemon.Ask(ctx)
	if err != nil {
		t.Error(err)
	}
}

// A daemon that starts on what another left takes it over, and takes out what
// it does not want.
func TestTableIsTakenOver(t *testing.T) {
	d := newDiamond(t)
	h := d.host("a")
	table := d.table(h, "10.1.1.1")
	old := plan.Spread{Prefix: netip.MustParsePrefix("10.9.0.0/16"), Paths: []plan.RelayPath{{Relays: []netip.Addr{netip.MustParseAddr("10.255.0.2")}}}}
	if err := table.Set(old); err != nil {
		t.Fatal(err)
	}
	again := d.table(h, "10.1.1.1")
	daemon := New("a", again, slog.New(slog.NewTextHandler(io.Discard, nil)))
	s := spreadOfTwo()
	s.Also = []netip.Prefix{netip.MustParsePrefix("10.8.0.0/16")}
	daemon.Apply([]plan.Spread{s})
	if rules := again.Rules(); len(rules) != 1 || rules[0] != s.Prefix {
		t.Fatalf("rules: %v", rules)
	}
	// A prefix becomes a rule of its own, and the other goes on.
	own := plan.Spread{Prefix: s.Also[0], Paths: s.Paths[:1]}
	s.Also = nil
	daemon.Apply([]plan.Spread{own, s})
	if err := again.SetUp(s.Prefix, 1, false); err != nil || len(again.Rules()) != 2 {
		t.Errorf("rules %v, %v", again.Rules(), err)
	}
	if again.SetUp(own.Prefix, 1, false) == nil {
		t.Error("the new rule has the paths of the other")
	}
	daemon.Apply(nil)
	if rules := again.Rules(); len(rules) != 0 {
		t.Errorf("rules: %v", rules)
	}
}

func TestBadLists(t *testing.T) {
	for name, text := range map[string]string{
		"no yaml":      "spreads: [",
		"unknown word": "spread: []",
		"no prefix":    "spreads: [{paths: [{relays: [10.0.0.1]}]}]",
		"host bits":    "spreads: [{prefix: 10.0.0.1/8, paths: [{relays: []}]}]",
		"no paths":     "spreads: [{prefix: 10.0.0.0/8}]",
		"mode":         "spreads: [{prefix: 10.0.0.0/8, mode: best, paths: [{relays: []}]}]",
		"IPv6":         "spreads: [{prefix: 10.0.0.0/8, paths: [{relays: ['::1']}]}]",
		"too long":     "spreads: [{prefix: 10.0.0.0/8, paths: [{relays: [1.1.1.1, 1.1.1.2, 1.1.1.3, 1.1.1.4, 1.1.1.5, 1.1.1.6, 1.1.1.7, 1.1.1.8, 1.1.1.9]}]}]",
		"same path":    "spreads: [{prefix: 10.0.0.0/8, paths: [{relays: [1.1.1.1]}, {relays: [1.1.1.1]}]}]",
		"same prefix":  "spreads: [{prefix: 10.0.0.0/8, also: [10.0.0.0/8], paths: [{relays: [1.1.1.1]}]}]",
		"gap":          "spreads: [{prefix: 10.0.0.0/8, gap: long, paths: [{relays: [1.1.1.1]}]}]",
		"no turn":      "spreads: [{prefix: 10.0.0.0/8, paths: [{relays: [1.1.1.1], turn: '::1'}]}]",
		"keys":         "spreads: [{[1]: 2}]",
		"a number":     "spreads: 5",
		"a list":       "[a, b]",
		"word of path": "spreads: [{prefix: 10.0.0.0/8, paths: [{relay: [1.1.1.1]}]}]",
		"weight":       "spreads: [{prefix: 10.0.0.0/8, paths: [{relays: [1.1.1.1], weight: -3}]}]",
		"tunnel":       "spreads: [{prefix: 10.0.0.0/8, vni: 5, by: udp, paths: [{relays: [1.1.1.1]}]}]",
		"nobody":       "spreads: [{prefix: 10.0.0.0/8, paths: [{relays: [0.0.0.0]}]}]",
		"many":         "spreads: [{prefix: 10.0.0.0/8, paths: [{relays: [224.0.0.1]}]}]",
		"itself":       "spreads: [{prefix: 10.0.0.0/8, paths: [{relays: [127.0.0.1]}]}]",
	} {
		if _, err := ParseLists("lists.yaml", []byte(text)); err == nil || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	good, err := ParseLists("lists.yaml", []byte("spreads: [{prefix: 10.2.0.0/16, mode: flowlet, gap: 1ms, paths: [{relays: [10.255.0.1], weight: 3, turn: 10.255.2.1}, {relays: []}]}]"))
	if err != nil || len(good) != 1 || time.Duration(good[0].Gap) != time.Millisecond || good[0].Paths[0].Weight != 3 {
		t.Errorf("%+v, %v", good, err)
	}
	both := Merge(good, []plan.Spread{{Prefix: good[0].Prefix, Also: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16")}}, {Prefix: good[0].Prefix}})
	if len(both) != 2 || both[1].Prefix.String() != "10.3.0.0/16" || len(both[1].Also) != 0 {
		t.Errorf("%+v", both)
	}
}
