package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"sublet/measure/pktgen"
)

// The processors of the machine that are used: all work of a packet on the
// first, the receiver of a stream over two on the second.
const (
	first  = 0
	second = 1
)

var (
	small   = gauge{"60 B, Mpps", "%.3f", func(n network) (float64, error) { return mega(pktgen.Arrive(n.from, n.to, 60, first, *window)) }}
	alone   = gauge{"60 B without sender, Mpps", "%.3f", func(n network) (float64, error) { return mega(enter(n)) }}
	large   = gauge{"1400 B, Mpps", "%.3f", func(n network) (float64, error) { return mega(pktgen.Arrive(n.from, n.to, 1400, first, *window)) }}
	sending = gauge{"60 B sent, ns", "%.0f", func(n network) (float64, error) { return perPacket(leave(n)) }}
	tcpOne  = gauge{"TCP 1 core, Gbit/s", "%.1f", func(n network) (float64, error) { return giga(pktgen.Stream(n.from, n.to, first, first, *window)) }}
	tcpTwo  = gauge{"TCP 2 cores, Gbit/s", "%.1f", func(n network) (float64, error) { return giga(pktgen.Stream(n.from, n.to, first, second, *window)) }}
	rttHalf = gauge{"rtt p50, us", "%.1f", func(n network) (float64, error) {
		p50, _, err := pktgen.Ping(n.from, n.to, first, pings())
		return p50, err
	}}
	rttWorst = gauge{"rtt p99, us", "%.1f", func(n network) (float64, error) {
		_, p99, err := pktgen.Ping(n.from, n.to, first, pings())
		return p99, err
	}}
)

func pings() int { return int(window.Microseconds() / 50) }

func mega(v float64, err error) (float64, error) { return v / 1e6, err }
func giga(v float64, err error) (float64, error) { return v / 1e9, err }

// leave is the rate at which a network's frames leave its host, if they do.
func leave(n network) (float64, error) {
	if n.wire.NS == nil {
		return math.NaN(), nil
	}
	return pktgen.Leave(n.from, n.to, n.wire, 60, first, *window)
}

// enter is the rate of frames that no sender had to make.
func enter(n network) (float64, error) { return ifPair(pktgen.Enter(n.from, n.to, 60, first, *window)) }

// until is the rate up to the far end of a pair of devices.
func until(n network, stop pktgen.Place) (float64, error) {
	return ifPair(pktgen.Until(n.from, n.to, stop, 60, first, *window))
}

// ifPair leaves figures out that need a pair of devices where there is none.
func ifPair(rate float64, err error) (float64, error) {
	if errors.Is(err, pktgen.ErrNoFar) {
		return math.NaN(), nil
	}
	return rate, err
}

// perPacket is the processor's time, all of which goes into packets.
func perPacket(v float64, err error) (float64, error) { return 1e9 / v, err }

// The stages of Nakamura (thesis, section 4.2): what the sender's own
// stack costs, the tunnel, the way out of the host, and what the receiving host
// adds. Each is the way so far; the table prints the differences.
var stages = []gauge{
	{"inner transmit, ns", "%.0f", func(n network) (float64, error) { return perPacket(until(n, n.from)) }},
	{"tunnel, ns", "%.0f", func(n network) (float64, error) { return perPacket(leave(n)) }},
	{"outer transmit, ns", "%.0f", func(n network) (float64, error) { return perPacket(until(n, n.wire)) }},
	{"receive, ns", "%.0f", func(n network) (float64, error) { return perPacket(pktgen.Arrive(n.from, n.to, 60, first, *window)) }},
}

var groups = []group{
	{name: "overlay", build: overlays, gauges: []gauge{small, alone, large, sending, tcpOne, tcpTwo, rttHalf, rttWorst}},
	{name: "stages", build: overlays, gauges: stages, differences: true},
	{name: "router", build: routers, gauges: []gauge{small, alone, large, tcpOne, tcpTwo, rttHalf, rttWorst}},
	{name: "switch", build: switches, gauges: []gauge{small, alone, large, tcpOne, tcpTwo, rttHalf, rttWorst}},
	{name: "path", build: paths, gauges: []gauge{small, alone, large, tcpOne, tcpTwo, rttHalf, rttWorst}},
	{name: "scale", build: scale, gauges: []gauge{small, rttHalf}},
}

// each builds networks of the kernel's parts.
func (b *bench) each(builds ...func() (network, error)) error {
	for _, build := range builds {
		if err := b.add(build()); err != nil {
			return err
		}
	}
	return nil
}

// product starts a lab that ends with the bench.
func (b *bench) product(ctx context.Context, exe, substrate string) (*product, error) {
	p, err := startProduct(ctx, exe, substrate)
	if err == nil {
		b.later(p.Stop)
	}
	return p, err
}

func overlays(ctx context.Context, exe string) (*bench, error) {
	b := &bench{}
	if err := b.each(plainOverlay, bridgedVXLAN, nodeVXLAN); err != nil {
		return b, err
	}
	for _, shaped := range []bool{false, true} {
		if err := b.overlay(ctx, exe, shaped); err != nil {
			return b, err
		}
	}
	return b, nil
}

// overlay is a leased link between two hosts.
func (b *bench) overlay(ctx context.Context, exe string, shaped bool) error {
	p, err := b.product(ctx, exe, twoHosts)
	if err != nil {
		return err
	}
	name := "Sublet, shaped"
	if !shaped {
		name = "Sublet, queues removed"
	}
	n, err := p.lease(ctx, name, overlayRequest("overlay"))
	n.close = nil // goes with its lab, whose agents may be gone
	if err == nil {
		n.wire, err = p.wire("h1", "to-h2")
	}
	if err == nil && !shaped {
		err = p.unshape()
	}
	return b.add(n, err)
}

func routers(ctx context.Context, exe string) (*bench, error) {
	b := &bench{}
	kernel, err := kernelRouters(1)
	if err := errors.Join(err, b.add(kernel[0], nil), b.add(bare())); err != nil {
		return b, err
	}
	p, err := b.product(ctx, exe, oneHost)
	if err != nil {
		return b, err
	}
	return b, b.add(p.lease(ctx, "Sublet", routerRequest("router")))
}

func switches(ctx context.Context, exe string) (*bench, error) {
	b := &bench{}
	if err := b.each(linuxBridge, bare); err != nil {
		return b, err
	}
	err := b.add(openVSwitch())
	if errors.Is(err, errNoOpenVSwitch) {
		fmt.Fprintln(os.Stderr, err)
	} else if err != nil {
		return b, err
	}
	p, err := b.product(ctx, exe, oneHost)
	if err != nil {
		return b, err
	}
	return b, b.add(p.lease(ctx, "Sublet", switchRequest("switch")))
}

func paths(ctx context.Context, exe string) (*bench, error) {
	b := &bench{}
	unshaped, shaped := func() (network, error) { return kernelPath(false) }, func() (network, error) { return kernelPath(true) }
	if err := b.each(unshaped, shaped, bare); err != nil {
		return b, err
	}
	for _, beside := range []int{0, classes - 1} {
		if err := b.path(ctx, exe, beside); err != nil {
			return b, err
		}
	}
	return b, nil
}

// path is a whole path through the product, with links beside it.
func (b *bench) path(ctx context.Context, exe string, beside int) error {
	p, err := b.product(ctx, exe, twoHosts)
	if err != nil {
		return err
	}
	if beside > 0 {
		if _, err := p.lease(ctx, "beside", besideRequest("beside", beside)); err != nil {
			return err
		}
	}
	n, err := p.lease(ctx, fmt.Sprintf("Sublet, shaped classes: %d", beside+1), pathRequest("path"))
	n.close = nil // goes with its lab
	return b.add(n, err)
}

// scale is the same path alone on its hosts and among 1,000 links of 100
// networks.
func scale(ctx context.Context, exe string) (*bench, error) {
	b := &bench{}
	p, err := b.product(ctx, exe, twoHosts)
	if err != nil {
		return b, err
	}
	n, err := p.lease(ctx, "1 network", pathRequest("path"))
	n.close = nil // goes with its lab
	if err := b.add(n, err); err != nil {
		return b, err
	}
	if p, err = b.product(ctx, exe, twoHosts); err != nil {
		return b, err
	}
	for i := range 99 {
		if _, err := p.lease(ctx, "beside", besideRequest(fmt.Sprint("beside", i), 10)); err != nil {
			return b, err
		}
	}
	n, err = p.lease(ctx, "100 networks, about 1,000 links", pathRequest("path"))
	n.close = nil
	return b, b.add(n, err)
}
