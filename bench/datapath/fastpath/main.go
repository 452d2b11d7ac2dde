// Command fastpath gauges the programs of routers and switches by themselves,
// against kernel forwarding and the Linux bridge, and OpenFlow switches: the same namespaces and
// pairs of virtual Ethernet around all, without a lease's links. All are up at
// once and measured in turn, round after round.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sublet/bench/harness"
	"sublet/datapath/bridge"
	"sublet/datapath/kernel"
	"sublet/datapath/ofswitch"
	"sublet/datapath/vxrouter"
	"sublet/measure/pktgen"
	"sublet/openflow/pipeline"
	"sublet/plan"
	"sublet/vnet"
)

var (
	rounds = flag.Int("rounds", 5, "rounds, interleaved")
	window = flag.Duration("window", time.Second, "of each measurement")
	size   = flag.Int("size", 60, "of a frame, bytes")
)

func main() { harness.Main("datapath/fastpath", run) }

// measuredPath is from one node to another through what is measured.
type measuredPath struct {
	name     string
	from, to pktgen.Place
}

func run(ctx context.Context, _ string) error {
	dir, err := os.MkdirTemp("/run", "sl-short-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	host, err := kernel.NewHost(kernel.Config{Host: "h", Run: dir})
	if err != nil {
		return err
	}
	defer host.Close()
	b := &builder{host: host, routers: vxrouter.New(host), switches: bridge.New(host)}
	defer b.clean(ctx)
	fmt.Printf("%s; %d rounds of %s, frames of %d bytes, packets in a second of one processor's time\n\n", harness.Machine(), *rounds, *window, *size)
	for _, group := range [][]func(context.Context) (measuredPath, error){{b.router("k", false), b.router("s", true)}, {b.bridge, b.vswitch, b.openflow("kernel datapath", true), b.openflow("process datapath", false)}} {
		var ways []measuredPath
		for _, build := range group {
			w, err := build(ctx)
			if err != nil {
				return err
			}
			ways = append(ways, w)
		}
		if err := compare(ways); err != nil {
			return err
		}
	}
	return nil
}

// compare measures in turn and prints medians, and ratios to the first.
func compare(ways []measuredPath) error {
	rates := make([][]float64, len(ways))
	ratios := make([][]float64, len(ways))
	for range *rounds {
		for i, w := range ways {
			rate, err := pktgen.Arrive(w.from, w.to, *size, 0, *window)
			if err != nil {
				return fmt.Errorf("measure %s: %w", w.name, err)
			}
			rates[i] = append(rates[i], rate)
			ratios[i] = append(ratios[i], rate/rates[0][len(rates[i])-1])
		}
	}
	for i, w := range ways {
		slices.Sort(rates[i])
		slices.Sort(ratios[i])
		last, half := *rounds-1, *rounds/2
		fmt.Printf("%-20s %.3f Mpps (%.3f to %.3f), ratio %.2f (%.2f to %.2f)\n", w.name,
			rates[i][half]/1e6, rates[i][0]/1e6, rates[i][last]/1e6, ratios[i][half], ratios[i][0], ratios[i][last])
	}
	fmt.Println()
	return nil
}

type builder struct {
	host     *kernel.Host
	routers  *vxrouter.Part
	switches *bridge.Part
	made     []string
	undo     []plan.Step
	stop     []func()
}

var lease = vnet.LeaseID{Tenant: "bench", Network: "short"}

// space makes a namespace.
func (b *builder) space(key string) error {
	ns, err := kernel.NewNamespace(func() error { return nil })
	if err != nil {
		return err
	}
	defer ns.Close()
	b.made = append(b.made, key)
	return kernel.Bind(ns, b.host.Path(key))
}

// in runs ip(8) in a namespace, one command a line.
func (b *builder) in(key, lines string) error {
	for _, line := range strings.Split(lines, "\n") {
		argv := append([]string{"--net=" + b.host.Path(key)}, strings.Fields(line)...)
		if out, err := exec.Command("nsenter", argv...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w %s", line, err, out)
		}
	}
	return nil
}

func (b *builder) do(ctx context.Context, p interface {
	Do(context.Context, plan.Step) error
}, item plan.Item) error {
	b.undo = append(b.undo, plan.Step{Op: plan.Delete, Item: item})
	return p.Do(ctx, plan.Step{Op: plan.Add, Item: item})
}

// pair joins a new node to a namespace.
func (b *builder) pair(node, addr, at, device string) error {
	if err := b.space(node); err != nil {
		return err
	}
	return b.in(node, fmt.Sprintf("ip link add eth0 type veth peer name %s netns %s\nip addr add %s dev eth0\nip link set eth0 up\nnsenter --net=%s ip link set %s up",
		device, b.host.Path(at), addr, b.host.Path(at), device))
}

func (b *builder) between(name, a, addrA, z, addrZ string) (measuredPath, error) {
	from, err := pktgen.Open(b.host.Path(a), "eth0", netip.MustParseAddr(addrA))
	if err != nil {
		return measuredPath{}, err
	}
	to, err := pktgen.Open(b.host.Path(z), "eth0", netip.MustParseAddr(addrZ))
	return measuredPath{name, from, to}, err
}

// router is a routing namespace, with or without the fast path.
func (b *builder) router(letter string, fast bool) func(context.Context) (measuredPath, error) {
	return func(ctx context.Context) (measuredPath, error) {
		key := plan.Namespace(lease, "r"+letter)
		if err := b.space(key); err != nil {
			return measuredPath{}, err
		}
		a, z := "a"+letter, "z"+letter
		for _, err := range []error{
			b.pair(a, "10.0.1.2/24", key, "eth0"), b.pair(z, "10.0.2.2/24", key, "eth1"),
			b.in(key, "ip addr add 10.0.1.1/24 dev eth0\nip addr add 10.0.2.1/24 dev eth1\nsysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0"),
			b.in(a, "ip route add default via 10.0.1.1"), b.in(z, "ip route add default via 10.0.2.1"),
		} {
			if err != nil {
				return measuredPath{}, err
			}
		}
		name := "kernel forwarding"
		if fast {
			name = "router, fast path"
			if err := b.do(ctx, b.routers, plan.VxRouter{Lease: lease, Node: "r" + letter, Forward: true}); err != nil {
				return measuredPath{}, err
			}
		}
		if err := b.in(a, "ping -c 3 -i 0.2 10.0.2.2"); err != nil {
			return measuredPath{}, err
		}
		return b.between(name, a, "10.0.1.2", z, "10.0.2.2")
	}
}

// star joins four nodes to a switch's namespace.
func (b *builder) star(key, letter string) error {
	for i := range 4 {
		if err := b.pair(fmt.Sprintf("n%d%s", i, letter), fmt.Sprintf("10.0.0.%d/24", i+1), key, fmt.Sprintf("eth%d", i)); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) bridge(context.Context) (measuredPath, error) {
	if err := b.space("bridge"); err != nil {
		return measuredPath{}, err
	}
	if err := b.star("bridge", "b"); err != nil {
		return measuredPath{}, err
	}
	err := b.in("bridge", `sysctl -qw net.bridge.bridge-nf-call-iptables=0
ip link add br0 type bridge mcast_snooping 0
ip link set br0 up
ip link set eth0 master br0
ip link set eth1 master br0
ip link set eth2 master br0
ip link set eth3 master br0`)
	if err != nil {
		return measuredPath{}, err
	}
	return b.between("Linux bridge", "n0b", "10.0.0.1", "n1b", "10.0.0.2")
}

func (b *builder) vswitch(ctx context.Context) (measuredPath, error) {
	s := plan.Switch{Lease: lease, Switch: "s", Type: vnet.SwitchKernel, Ageing: vnet.DefaultAgeing}
	if err := b.do(ctx, b.switches, s); err != nil {
		return measuredPath{}, err
	}
	if err := b.star(s.Key(), "s"); err != nil {
		return measuredPath{}, err
	}
	for i := range 4 {
		p := plan.SwitchPort{
			Lease: lease, Switch: "s", Type: vnet.SwitchKernel, Interface: fmt.Sprintf("eth%d", i),
			LearningPort: plan.LearningPort{MACs: 16, Broadcast: 1000, Unknown: 1000},
		}
		if err := b.do(ctx, b.switches, p); err != nil {
			return measuredPath{}, err
		}
	}
	return b.between("vswitch", "n0s", "10.0.0.1", "n1s", "10.0.0.2")
}

// openflow is an OpenFlow switch that forwards as a learning switch does (NORMAL).
func (b *builder) openflow(name string, inKernel bool) func(context.Context) (measuredPath, error) {
	return func(ctx context.Context) (measuredPath, error) {
		letter := name[:1]
		key := "openflow" + letter
		if err := b.space(key); err != nil {
			return measuredPath{}, err
		}
		if err := b.star(key, letter+"o"); err != nil {
			return measuredPath{}, err
		}
		ns, err := kernel.OpenNamespace(b.host.Path(key))
		if err != nil {
			return measuredPath{}, err
		}
		made, stop := make(chan error, 1), make(chan struct{})
		ctx, cancel := context.WithCancel(ctx)
		b.stop = append(b.stop, func() { cancel(); <-stop })
		go kernel.In(ns, func() error {
			defer close(stop)
			defer ns.Close()
			s, err := ofswitch.New(ofswitch.Config{
				Pipeline: pipeline.Config{Tables: 1, Entries: 10}, Ports: []string{"eth0", "eth1", "eth2", "eth3"},
				Standalone: true, Kernel: inKernel, Log: func(err error) { fmt.Fprintln(os.Stderr, err) },
			})
			if made <- err; err != nil {
				return err
			}
			defer s.Close()
			return s.Run(ctx)
		})
		if err := <-made; err != nil {
			return measuredPath{}, err
		}
		if err := b.in("n0"+letter+"o", "ping -c 3 -i 0.2 10.0.0.2"); err != nil {
			return measuredPath{}, err
		}
		return b.between("OpenFlow, "+name, "n0"+letter+"o", "10.0.0.1", "n1"+letter+"o", "10.0.0.2")
	}
}

// clean takes everything away, the last first.
func (b *builder) clean(ctx context.Context) {
	for _, stop := range b.stop {
		stop()
	}
	for _, step := range slices.Backward(b.undo) {
		var err error
		if step.Item.Kind() == plan.KindVxRouter {
			err = b.routers.Do(ctx, step)
		} else {
			err = b.switches.Do(ctx, step)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "clean up:", err)
		}
	}
	for _, key := range b.made {
		if err := kernel.Unbind(filepath.Join(b.host.Dir("netns"), key)); err != nil {
			fmt.Fprintln(os.Stderr, "clean up:", err)
		}
	}
	b.routers.Close()
	b.switches.Close()
}
