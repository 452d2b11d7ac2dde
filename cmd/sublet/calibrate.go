package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"sublet/agent/control"
	"sublet/lab/testbed"
	"sublet/measure/pktgen"
	"sublet/plan"
	"sublet/vnet"
	"sublet/vnet/file"
)

func (a *app) calibrate() *cobra.Command {
	var window time.Duration
	c := a.noun(&cobra.Command{
		Use:   "calibrate [HOST]",
		Short: "Measure what this machine can forward, and let admission count on no more",
		Long: `Build networks of one link, a router, a switch, and a tunnel between two hosts,
out of namespaces on this machine, and measure how many packets of several
sizes one processor forwards in a second of its time. What the slowest of them
does with frames of 900 bytes, the mean that promises are made for, on all
processors is what the machine can carry. The slower of link and tunnel, and a
quarter of that to spare, is what it adds to a link's latency. What a packet takes of
a processor beside sending it is what leases are charged for the kernel's work.

The result is kept in ` + measuredFile + `, where labs find it. With HOST, the
substrate host that this machine is, it is given to the server too: from then on
admission refuses what the host cannot carry, inside it, on a link of its, or all
together. It takes some 15 s and a processor.

Agents do this by themselves, at the lowest priority, while no network runs on
their host: when nobody has, every 90 days, and when the kernel or the processors
are others (sublet agent --calibrate-after).`,
		Example:           "  sublet calibrate\n  sublet calibrate h1 -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeHost,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			return a.runCalibration(c.Context(), args, window)
		},
	})
	c.Flags().DurationVar(&window, "window", 500*time.Millisecond, "length of each measurement")
	return c
}

// calibration is what a machine can forward.
type calibration struct {
	Processors int        `json:"processors"`
	Paths      []pathRate `json:"paths"`
	Carries    vnet.Rate  `json:"carries_bps"` // tenants' frames of plan.MeanFrame, all processors
	// Delay is what the machine adds to a link's latency, with some to spare.
	Delay time.Duration `json:"delay_ns"`
	// Inside is what its kernel spends on a packet of a link, Tunnel at each end of a
	// tunnel: what senders take by themselves is not in it.
	Inside vnet.PacketCost `json:"inside_cost"`
	Tunnel vnet.PacketCost `json:"tunnel_cost"`
}

// pathRate is what one processor forwards of one kind of path.
type pathRate struct {
	Path    string    `json:"path"` // link, router, switch, tunnel
	Frame   int       `json:"frame_bytes"`
	Packets float64   `json:"packets_per_second"`
	Rate    vnet.Rate `json:"rate_bps"`
	// Sent is what a processor sends where nothing comes after.
	Sent float64 `json:"sent_per_second,omitempty"`
}

// costOf is what a path takes of a processor for each packet and byte, beside sending,
// by least squares over the sizes that were measured; part of it is what is asked for.
func (c calibration) costOf(path string, part float64) (vnet.PacketCost, error) {
	var points []control.Point
	for _, p := range c.Paths {
		if p.Path == path && p.Packets > 0 && p.Sent > p.Packets {
			points = append(points, control.Point{Bytes: float64(p.Frame), Cost: part * 1e9 * (1/p.Packets - 1/p.Sent)})
		}
	}
	fit, worst, err := control.Fit(points)
	if err != nil {
		return vnet.PacketCost{}, fmt.Errorf("cost of packets of a %s: %w", path, err)
	}
	return vnet.PacketCost{Fixed: fit.Fixed, PerByte: fit.PerByte, Error: worst}, nil
}

// frameSizes that are measured: the smallest, the mean, the largest.
var frameSizes = []int{60, plan.MeanFrame, 1514}

func (a *app) runCalibration(ctx context.Context, hosts []string, window time.Duration) error {
	if window < 10*time.Millisecond || window > time.Minute {
		return badInput{fmt.Errorf("--window %s: choose 10ms to 1m", window)}
	}
	if err := a.mayCalibrate(ctx, hosts); err != nil {
		return err
	}
	result, err := a.measureMachine(ctx, window)
	if err != nil {
		return err
	}
	m := vnet.Measurement{Measured: result.Carries, Delay: result.Delay, InsideCost: result.Inside, TunnelCost: result.Tunnel, MeasuredAt: time.Now().UTC().Truncate(time.Second), Machine: thisMachine()}
	if err := remember(measuredFile, m); err != nil {
		return fmt.Errorf("keep what was measured: %w", err)
	}
	for _, host := range hosts {
		if err := a.client().Measured(ctx, vnet.HostID(host), m); err != nil {
			return err
		}
	}
	var rows [][]string
	for _, p := range result.Paths {
		rows = append(rows, []string{p.Path, fmt.Sprint(p.Frame), fmt.Sprintf("%.3f", p.Packets/1e6), readable(p.Rate)})
	}
	if err := a.print(result, "PATH FRAME MPPS-PER-CORE RATE-PER-CORE", rows); err != nil || a.format != "table" {
		return err
	}
	fmt.Fprintf(a.out, "\ncarries %s on %d processors; adds %s to a link's latency\n", readable(result.Carries), result.Processors, result.Delay)
	fmt.Fprintf(a.out, "its kernel spends %s on a link, %s at an end of a tunnel\n", result.Inside, result.Tunnel)
	return nil
}

// mayCalibrate refuses before anything is made.
func (a *app) mayCalibrate(ctx context.Context, hosts []string) error {
	if os.Geteuid() != 0 {
		return badInput{errors.New("calibration makes network namespaces: run it as root")}
	}
	if len(hosts) == 0 {
		return nil
	}
	known, err := a.client().Hosts(ctx)
	if err != nil {
		return err
	}
	for _, h := range known {
		if string(h.Name) == hosts[0] {
			return nil
		}
	}
	return badInput{fmt.Errorf("there is no host %s: see sublet hosts", hosts[0])}
}

// measureMachine builds one network of each kind, one after the other.
func (a *app) measureMachine(ctx context.Context, window time.Duration) (calibration, error) {
	p := a.progress("measuring")
	defer p.end()
	g, err := startTestbed(ctx)
	if err != nil {
		return calibration{}, err
	}
	result := calibration{Processors: runtime.NumCPU()}
	err = result.measure(ctx, g, window)
	return result, errors.Join(err, g.Stop())
}

// The lab's hosts carry what no host can, so that nothing is shaped on them.
const calibrationSubstrate = `hosts: [{name: h1, capacity: 10Tbit}, {name: h2, capacity: 10Tbit}]
links: [{name: wire, ends: [h1, h2], capacity: 100Gbit, mtu: 1550}]
`

func startTestbed(ctx context.Context) (*testbed.Testbed, error) {
	sub, err := file.ParseSubstrate("calibration", []byte(calibrationSubstrate))
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return testbed.Start(ctx, exe, sub, true)
}

// measuredPaths are the kinds of paths between nodes a and z.
var measuredPaths = []struct{ path, request string }{
	{"link", "network: link\nnodes: [{name: a, host: h1}, {name: z, host: h1}]\nlinks: [{ends: [a, z], min: 1Mbit}]\n"},
	{"router", "network: router\nnodes: [{name: a, host: h1}, {name: z, host: h1}]\nrouters: [{name: r, host: h1}]\nlinks: [{ends: [a, r], min: 1Mbit}, {ends: [r, z], min: 1Mbit}]\n"},
	{"switch", "network: switch\nnodes: [{name: a, host: h1}, {name: z, host: h1}]\nswitches: [{name: s, host: h1}]\nlinks: [{ends: [a, s], min: 1Mbit}, {ends: [s, z], min: 1Mbit}]\n"},
	{"tunnel", "network: tunnel\nnodes: [{name: a, host: h1}, {name: z, host: h2}]\nlinks: [{ends: [a, z], min: 1Mbit}]\n"},
}

func (c *calibration) measure(ctx context.Context, g *testbed.Testbed, window time.Duration) error {
	for _, kind := range measuredPaths {
		l, err := g.Up(ctx, kind.request)
		if err != nil {
			return fmt.Errorf("measure %s: %w", kind.path, err)
		}
		from, to, err := g.Ends(l, "a", "z")
		if err != nil {
			return fmt.Errorf("measure %s: %w", kind.path, err)
		}
		if len(l.Request.Links) == 1 { // a link inside a host, or a tunnel
			d, err := delay(ctx, g, l)
			if err != nil {
				return fmt.Errorf("measure %s: %w", kind.path, err)
			}
			c.Delay = max(c.Delay, d)
		}
		for _, size := range frameSizes {
			packets, err := forwarded(window, func(window time.Duration) (float64, error) { return pktgen.Arrive(from, to, size, 0, window) })
			if err != nil {
				return fmt.Errorf("%s, frames of %d bytes: %w", kind.path, size, err)
			}
			sent, err := forwarded(window, func(window time.Duration) (float64, error) { return pktgen.Leave(from, to, from, size, 0, window) })
			if err != nil {
				return fmt.Errorf("%s, sending frames of %d bytes: %w", kind.path, size, err)
			}
			rate := vnet.Rate(packets * float64(size) * 8)
			c.Paths = append(c.Paths, pathRate{kind.path, size, packets, rate, sent})
			if whole := rate * vnet.Rate(c.Processors); size == plan.MeanFrame && (c.Carries == 0 || whole < c.Carries) {
				c.Carries = whole
			}
		}
	}
	var inside, tunnel error
	c.Inside, inside = c.costOf("link", 1)
	c.Tunnel, tunnel = c.costOf("tunnel", 0.5) // both ends were on this machine
	return errors.Join(inside, tunnel)
}

// calibrationTries bounds how often a window is measured, each twice as long as
// the one before, in which the senders got no processor time to speak of.
const calibrationTries = 5

// forwarded is how many packets a processor forwards in a second of its time.
func forwarded(window time.Duration, measure func(time.Duration) (float64, error)) (float64, error) {
	for range calibrationTries {
		packets, err := measure(window)
		if err != nil || packets > 0 && !math.IsInf(packets, 0) {
			return packets, err
		}
		window *= 2
	}
	return 0, errors.New("the senders get no processor time: measure again when the machine is less busy")
}
