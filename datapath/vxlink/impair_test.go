package vxlink

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/datapath/impair"
	"sublet/datapath/kernel"
	"sublet/internal/stall"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// TestMain lets the test binary stand in for sublet's hidden subcommands.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case kernel.InitCommand:
			fmt.Fprintln(os.Stderr, kernel.RunLaunch())
			os.Exit(1)
		case impair.Command:
			os.Exit(impair.Main(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// impairedHost is a host whose process of impaired links ends with the test.
func (b *bench) impairedHost(name string) (*Part, *kernel.Host) {
	part, h := b.host(name)
	b.t.Cleanup(func() {
		if err := h.Group("impair").Remove(); err != nil {
			b.t.Error(err)
		}
		_ = h.Group("").Rmdir()
	})
	return part, h
}

// processes of impaired links on a host.
func (b *bench) processes(h *kernel.Host) []int {
	b.t.Helper()
	pids, err := h.Group("impair").Processes()
	check(b.t, err)
	return pids
}

// echo is a pair of sockets, in node from and in node to.
func (b *bench) echo(from, to string, address netip.Addr) (out, in *net.UDPConn) {
	b.t.Helper()
	inside := func(path string, f func() error) {
		ns, err := kernel.OpenNamespace(path)
		check(b.t, err)
		defer ns.Close()
		check(b.t, kernel.In(ns, f))
	}
	inside(to, func() (err error) {
		in, err = net.ListenUDP("udp4", &net.UDPAddr{Port: 9001})
		return err
	})
	inside(from, func() (err error) {
		out, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 9001)))
		return err
	})
	check(b.t, in.SetReadBuffer(16<<20))
	b.t.Cleanup(func() { in.Close(); out.Close() })
	return out, in
}

// oneWay is the median time that datagrams take, of those that arrive.
func oneWay(t *testing.T, out, in *net.UDPConn) time.Duration {
	t.Helper()
	var took []time.Duration
	buffer := make([]byte, 64)
	for range 60 {
		begun := time.Now()
		_, err := out.Write([]byte("x"))
		check(t, err)
		check(t, in.SetReadDeadline(time.Now().Add(time.Second)))
		if _, err := in.Read(buffer); err == nil {
			took = append(took, time.Since(begun))
		}
	}
	if len(took) == 0 {
		t.Fatal("nothing arrives")
	}
	slices.Sort(took)
	return took[len(took)/2]
}

func TestImpairedLinkFollowsItsPlan(t *testing.T) {
	b := newBench(t)
	part, h := b.impairedHost("h1")
	n0, n1 := b.node(h, "n0"), b.node(h, "n1")
	link := local(100 * vnet.Mbit)
	add(t, part, link)
	b.ping(n0, address(1))
	out, in := b.echo(n0, n1, address(1))
	plain := oneWay(t, out, in)

	link.Ends[0].Impair = vnet.Impairment{Delay: 10 * time.Millisecond}
	add(t, part, link)
	has(t, part, link)
	watch := stall.Start()
	if got := oneWay(t, out, in) - plain; got < 9500*time.Microsecond || got > 10500*time.Microsecond && !watch.Stop().Explains(float64(got-10*time.Millisecond)/1e7) {
		t.Errorf("10 ms are %s", got)
	}

	link.Ends[0].Impair = vnet.Impairment{Loss: vnet.WholeShare} // live: the same device
	pids := b.processes(h)
	add(t, part, link)
	has(t, part, link)
	if now := b.processes(h); !slices.Equal(now, pids) || len(now) != 1 {
		t.Errorf("processes %v, before %v", now, pids)
	}
	_, err := out.Write([]byte("lost"))
	check(t, err)
	check(t, in.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	if _, err := in.Read(make([]byte, 9)); err == nil {
		t.Error("of a link that loses all a datagram arrived")
	}

	link.Ends[0].Impair = vnet.Impairment{}
	add(t, part, link)
	has(t, part, link)
	if now := b.processes(h); len(now) != 0 {
		t.Errorf("process %v is left", now)
	}
	if devices := b.in(h.Path(plan.Fabric(demo)), "ip", "-o", "link"); strings.Contains(devices, "i0a") {
		t.Errorf("left: %s", devices)
	}
	if got := oneWay(t, out, in); got > 5*time.Millisecond {
		t.Errorf("without an impairment a datagram takes %s", got)
	}
	remove(t, part, link)
	has(t, part)
	if left, _ := filepath.Glob(filepath.Join(h.Dir("impair"), "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What accidents take of an impaired link is seen, and made again; another
// agent takes over what is there.
func TestImpairedLinkIsRepaired(t *testing.T) {
	b := newBench(t)
	part, h := b.impairedHost("h1")
	n0, n1 := b.node(h, "n0"), b.node(h, "n1")
	link := local(100 * vnet.Mbit)
	link.Ends[0].Impair = vnet.Impairment{Delay: time.Millisecond}
	link.Ends[1].Impair = vnet.Impairment{Delay: 2 * time.Millisecond, Jitter: time.Millisecond, Distribution: vnet.Pareto}
	add(t, part, link)
	has(t, part, link)
	has(t, New(h), link)
	fabric := h.Path(plan.Fabric(demo))
	for what, damage := range map[string]func(){
		"the process":    func() { check(t, syscall.Kill(b.processes(h)[0], syscall.SIGKILL)); time.Sleep(100 * time.Millisecond) },
		"a device":       func() { b.ip(fabric, "link", "del", "i0a") },
		"a device's way": func() { b.ip(fabric, "link", "set", "i0b", "down") },
		"a program":      func() { b.in(fabric, "tc", "qdisc", "del", "dev", "i0a", "clsact") },
	} {
		t.Run(what, func(t *testing.T) {
			damage()
			if have := plan.Of[plan.VxLink](observe(t, part)); len(have) != 1 || reflect.DeepEqual(have[0], link) {
				t.Errorf("the damage is not seen: %v", have)
			}
			add(t, part, link)
			has(t, part, link)
			b.ping(n0, address(1))
			b.ping(n1, address(0))
		})
	}
	remove(t, part, link)
	has(t, part)
	if now := b.processes(h); len(now) != 0 {
		t.Errorf("process %v is left", now)
	}
}

// A process whose wires nobody wants ends.
func TestStrayWiresEnd(t *testing.T) {
	b := newBench(t)
	part, h := b.impairedHost("h1")
	b.namespace(h.Path("stray"))
	check(t, part.wires.Set(t.Context(), impair.Spec{Namespace: h.Path("stray"), Device: "i9a", Index: number(9)}))
	has(t, part)
	if now := b.processes(h); len(now) != 0 {
		t.Errorf("process %v is left", now)
	}
}

// Shares are kept within their binomial intervals, across hosts, too, and
// counted apart from other drops.
func TestImpairedTunnel(t *testing.T) {
	const sent, share = 20_000, 0.1
	b := newBench(t)
	parts, nodes, hosts := b.connect(500 * vnet.Mbit)
	b.t.Cleanup(func() { _ = hosts[0].Group("impair").Remove(); _ = hosts[0].Group("").Rmdir() })
	link := across(0, 500*vnet.Mbit)
	link.Ends[0].Impair = vnet.Impairment{Delay: 5 * time.Millisecond, Loss: vnet.Share(share * float64(vnet.WholeShare))}
	add(t, parts[0], link)
	has(t, parts[0], uplink(), link)
	b.ping(nodes[0], address(1))
	before := impairedDrops(t, parts[0])
	out, in := b.echo(nodes[0], nodes[1], address(1))
	arrived := make(chan int)
	go func() {
		got, buffer := 0, make([]byte, 64)
		for {
			_ = in.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := in.Read(buffer); err != nil {
				arrived <- got
				return
			}
			got++
		}
	}()
	for n := range sent {
		_, err := out.Write([]byte("counted"))
		check(t, err)
		if n%50 == 49 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	got := <-arrived
	most := 5 * math.Sqrt(sent*share*(1-share))
	if off := math.Abs(float64(got) - sent*(1-share)); off > most {
		t.Errorf("%d of %d arrived: %.0f off, more than %.0f", got, sent, off, most)
	}
	if counted := impairedDrops(t, parts[0]) - before; math.Abs(float64(counted)-float64(sent-got)) > 5 {
		t.Errorf("%d counted as impaired, %d did not arrive", counted, sent-got)
	}
	remove(t, parts[0], link)
}

// impairedDrops is what a part counted as lost on purpose.
func impairedDrops(t *testing.T, p *Part) (sum uint64) {
	t.Helper()
	samples, err := p.Samples(t.Context(), report.Scope{})
	check(t, err)
	for _, traffic := range report.Traffics(samples) {
		sum += traffic.Drops["impaired"]
	}
	return sum
}
