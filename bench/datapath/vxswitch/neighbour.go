package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sublet/bench/harness"
	"sublet/datapath/kernel"
	"sublet/measure/pktgen"
)

// What a tenant gets while their neighbour on the same hosting switch sends three
// times their capacity, by what they get alone.
var neighbour = flag.Bool("neighbour", false, "measure two tenants on one hosting switch instead, one saturating, in turn")

const configOfTwo = `
cpu: 0
ports:
- {name: a, tap: eth0, namespace: /run/netns/%s}
- {name: b, tap: eth0, namespace: /run/netns/%s}
- {name: c, tap: eth0, namespace: /run/netns/%s}
- {name: d, tap: eth0, namespace: /run/netns/%s}
virtual_switches:
- {name: quiet, ports: [{port: a, in: 20Mbit, out: 20Mbit}, {port: b, in: 20Mbit, out: 20Mbit}]}
- {name: loud, ports: [{port: c, in: 100Mbit, out: 100Mbit}, {port: d, in: 100Mbit, out: 100Mbit}]}
`

// pair is two tenants' networks on one hosting switch.
func pair(exe, dir string) (quiet, loud *network, err error) {
	quiet, loud = &network{name: "quiet"}, &network{name: "loud"}
	for _, n := range []*network{quiet, loud} {
		if err := n.namespaces(); err != nil {
			return quiet, loud, err
		}
	}
	file := filepath.Join(dir, "two.yaml")
	text := fmt.Appendf(nil, configOfTwo, quiet.ns("a"), quiet.ns("b"), loud.ns("a"), loud.ns("b"))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return quiet, loud, err
	}
	if err := quiet.start("hosting switch of", exe, "vxswitch", "run", file, "--socket", filepath.Join(dir, "two.sock")); err != nil {
		return quiet, loud, err
	}
	if err := quiet.places(); err != nil {
		return quiet, loud, err
	}
	return quiet, loud, loud.places()
}

// got is what the quiet tenant gets in one window.
type got struct{ rate, p50, p99 float64 }

func neighbours(ctx context.Context, exe, dir string) error {
	quiet, loud, err := pair(exe, dir)
	defer quiet.close()
	defer loud.close()
	if err != nil {
		return err
	}
	var alone, beside []got
	for i := range *rounds {
		for _, noisy := range []bool{i%2 != 0, i%2 == 0} { // what the machine does meanwhile hits both alike
			g, err := quiet.beside(ctx, loud, noisy)
			if err != nil {
				return err
			}
			if noisy {
				beside = append(beside, g)
			} else {
				alone = append(alone, g)
			}
		}
	}
	fmt.Println("| the quiet tenant | alone | beside one that sends three times their capacity | ratio |\n|---|---|---|---|")
	row := func(name, form string, of func(got) float64) {
		x, y := each(alone, of), each(beside, of)
		fmt.Printf("| %s | "+form+" | "+form+" | %s |\n", name, x.Median(), y.Median(), y.Over(x).Format("%.3f"))
	}
	row("of a stream of 15 Mbit/s arrives, %", "%.2f", func(g got) float64 { return g.rate })
	row("round trip p50, us", "%.0f", func(g got) float64 { return g.p50 })
	row("round trip p99, us", "%.0f", func(g got) float64 { return g.p99 })
	return nil
}

func each(list []got, of func(got) float64) (out harness.Samples) {
	for _, g := range list {
		out = append(out, of(g))
	}
	return out
}

// beside measures n while loud sends, or not.
func (n *network) beside(ctx context.Context, loud *network, noisy bool) (g got, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if noisy {
		if _, err := loud.pace(ctx, 300e6); err != nil {
			return g, err
		}
	}
	if g.p50, g.p99, err = pktgen.Ping(n.from, n.to, 1, 2000); err != nil {
		return g, err
	}
	counter, err := pktgen.CountAt(n.to, pktgen.Discard)
	if err != nil {
		return g, err
	}
	defer counter.Close()
	sending, stop := context.WithCancel(ctx)
	defer stop()
	sent, err := n.pace(sending, 15e6)
	if err != nil {
		return g, err
	}
	time.Sleep(*window)
	stop()
	time.Sleep(100 * time.Millisecond) // the last are on their way
	g.rate = 100 * float64(counter.Packets()) / float64(sent.Load())
	return g, nil
}

// giveWay keeps the thread of a goroutine off the forwarder's processor and from
// whom answers are timed for: what is measured is the switch, not whose programs
// get the processors. The thread ends with the goroutine.
func giveWay() {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(1)
	_ = unix.SchedSetaffinity(0, &set)
	if raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil { // 20 less the nice value
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, min(19, 20-raw+10))
	}
}

// pace sends frames of 1514 bytes at a rate, a few every millisecond.
func (n *network) pace(ctx context.Context, bits float64) (sent *atomic.Int64, err error) {
	sent = new(atomic.Int64)
	ns, err := kernel.OpenNamespace("/run/netns/" + n.ns("a"))
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	var c *net.UDPConn
	err = kernel.In(ns, func() (err error) {
		c, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("10.8.0.2"), pktgen.Discard)))
		return err
	})
	if err != nil {
		return nil, err
	}
	go func() {
		defer c.Close()
		giveWay()
		payload, began := make([]byte, 1472), time.Now()
		for ctx.Err() == nil {
			for due := int64(time.Since(began).Seconds() * bits / 8 / 1514); sent.Load() < due && ctx.Err() == nil; sent.Add(1) {
				_, _ = c.Write(payload) // what is refused is lost, as it is beyond a port's rate
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return sent, nil
}
