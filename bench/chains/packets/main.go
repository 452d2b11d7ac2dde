// Command packets measures what a chain's functions cost a packet: chains of 0 to 4
// functions that are programs, on one host and over two, against the same path without
// a chain, against as many network namespaces of the kernel that route and filter
// (nftables), and against as many tables of Open vSwitch in user space. All are up at
// once and measured in turn, round after round.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"sublet/bench/harness"
	"sublet/datapath/kernel"
	"sublet/datapath/nsh"
	"sublet/measure/pktgen"
)

var (
	rounds = flag.Int("rounds", 5, "rounds, interleaved")
	window = flag.Duration("window", time.Second, "of each measurement")
	size   = flag.Int("size", 60, "of a frame, bytes")
)

func main() { harness.Main("chains/packets", run) }

// subject is a path that is measured.
type subject struct {
	name     string
	from, to pktgen.Place
	rates    harness.Samples
}

// builder makes all of them in one fabric.
type builder struct {
	host     *kernel.Host
	part     *nsh.Part
	plane    nsh.Plane
	far      *far // the hosts of chains over two
	subjects []*subject
	spaces   []string
	undo     []func()
}

const fabric = "bench"

func run(context.Context, string) error {
	dir, err := os.MkdirTemp("/run", "slt-chain-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	host, err := kernel.NewHost(kernel.Config{Host: "h", Run: dir})
	if err != nil {
		return err
	}
	defer host.Close()
	b := &builder{host: host, part: nsh.New(host), plane: nsh.Plane{Fabric: fabric}}
	defer b.clean()
	if err := b.build(); err != nil {
		return err
	}
	fmt.Printf("%s; %d rounds of %s, frames of %d bytes, packets in a second of one processor's time\n\n", harness.Machine(), *rounds, *window, *size)
	return b.measure()
}

func (b *builder) build() error {
	if err := b.space(fabric); err != nil {
		return err
	}
	if err := b.pair("no chain"); err != nil {
		return err
	}
	if err := b.redirect(); err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		kind nsh.Kind
		n    int
	}{{"classifier and egress", nsh.None, 0}, {"1 that does nothing", nsh.None, 1}, {"2", nsh.None, 2}, {"4", nsh.None, 4},
		{"1 firewall", nsh.Firewall, 1}, {"2", nsh.Firewall, 2}, {"4", nsh.Firewall, 4}, {"NAT", nsh.NAT, 1}, {"limit", nsh.Limit, 1}} {
		if err := b.chain(c.name, c.kind, c.n); err != nil {
			return err
		}
	}
	if err := b.part.Set(b.plane); err != nil {
		return err
	}
	for _, filter := range []bool{false, true} {
		for _, n := range []int{1, 2, 4} {
			if err := b.routers(n, filter, false); err != nil {
				return err
			}
		}
	}
	if err := b.openVSwitch(1, 2, 4); err != nil {
		return err
	}
	return b.twoHosts(0, 2, 4)
}

// measure prints medians and spreads, and ratios to the path without a chain.
func (b *builder) measure() error {
	for range *rounds {
		for _, s := range b.subjects {
			rate, err := s.measure()
			if err != nil {
				return fmt.Errorf("measure %s: %w", s.name, err)
			}
			s.rates = append(s.rates, rate/1e6)
		}
	}
	fmt.Println("| path | Mpps | ratio |\n|---|---|---|")
	for _, s := range b.subjects {
		fmt.Printf("| %s | %s | %s |\n", s.name, s.rates.Format("%.3f"), s.rates.Over(b.subjects[0].rates).Format("%.2f"))
	}
	return nil
}

// measure is how many packets arrive; again where a busy machine let none be sent.
func (s *subject) measure() (rate float64, err error) {
	for range 5 {
		if rate, err = pktgen.Arrive(s.from, s.to, *size, 0, *window); err != nil || rate > 0 {
			return rate, err
		}
	}
	return 0, errors.New("nothing arrives")
}

func (b *builder) space(name string) error {
	ns, err := kernel.NewNamespace(func() error { return nil })
	if err != nil {
		return err
	}
	defer ns.Close()
	b.spaces = append(b.spaces, name)
	return kernel.Bind(ns, b.host.Path(name))
}

// in runs commands in a namespace.
func (b *builder) in(space string, lines ...string) error {
	argv := []string{"--net=" + b.host.Path(space), "sh", "-ec", strings.Join(lines, "\n")}
	if out, err := exec.Command("nsenter", argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w %s", lines, err, out)
	}
	return nil
}

// node makes a node with a device at another namespace.
func (b *builder) node(name, at, device, mac string) error {
	if err := b.space(name); err != nil {
		return err
	}
	return b.in(name, "ip link add eth0 type veth peer name "+device+" netns "+b.host.Path(at), "ip link set eth0 address "+mac,
		"ip link set eth0 up", "nsenter --net="+b.host.Path(at)+" ip link set "+device+" up")
}

func (b *builder) add(name, from, a, to, z string) error {
	f, err := pktgen.Open(b.host.Path(from), "eth0", netip.MustParseAddr(a))
	if err != nil {
		return err
	}
	t, err := pktgen.Open(b.host.Path(to), "eth0", netip.MustParseAddr(z))
	b.subjects = append(b.subjects, &subject{name: name, from: f, to: t})
	return err
}

// pair makes two nodes at the fabric that know each other.
func (b *builder) pair(name string) error {
	i := len(b.subjects)
	a, z := fmt.Sprint("a", i), fmt.Sprint("z", i)
	for _, err := range []error{
		b.node(a, fabric, "p"+a, "02:00:00:00:00:0a"), b.node(z, fabric, "p"+z, "02:00:00:00:00:0b"),
		b.in(a, "ip addr add 10.0.0.1/24 dev eth0", "ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:0b dev eth0"),
		b.in(z, "ip addr add 10.0.0.2/24 dev eth0", "ip neigh replace 10.0.0.1 lladdr 02:00:00:00:00:0a dev eth0"),
	} {
		if err != nil {
			return err
		}
	}
	return b.add(name, a, "10.0.0.1", z, "10.0.0.2")
}

// chain leads the packets of a pair through n functions of a kind.
func (b *builder) chain(name string, kind nsh.Kind, n int) error {
	i := len(b.subjects)
	if err := b.pair(name); err != nil {
		return err
	}
	path, index := uint32(i), uint8(255)
	b.plane.Classifiers = append(b.plane.Classifiers, nsh.Classifier{Port: fmt.Sprint("pa", i), Rules: []nsh.Rule{{Path: path, Index: index}}})
	for k := range n {
		f := nsh.Function{Name: fmt.Sprint("f", i, "-", k), Kind: kind}
		switch kind {
		case nsh.Firewall:
			f.Rules = firewall()
		case nsh.NAT:
			f.Prefix = netip.MustParsePrefix("198.51.100.0/28")
		case nsh.Limit:
			f.Rate = 80e9
		}
		b.plane.Functions = append(b.plane.Functions, f)
		b.plane.Hops = append(b.plane.Hops, nsh.Hop{Path: path, Index: index, Function: f.Name})
		index--
	}
	b.plane.Hops = append(b.plane.Hops, nsh.Hop{Path: path, Index: index, Egress: &nsh.Egress{Port: fmt.Sprint("pz", i)}})
	return nil
}

// firewall denies a port of TCP, which nothing here goes to.
func firewall() []nsh.FirewallRule {
	return []nsh.FirewallRule{{Match: nsh.Match{Proto: unix.IPPROTO_TCP, DstPorts: nsh.Ports{From: 23, To: 23}}, Deny: true}}
}

// redirect joins the first pair by a program that does nothing else.
func (b *builder) redirect() error {
	ns, err := b.host.Open(fabric)
	if err != nil {
		return err
	}
	defer ns.Close()
	conn, err := kernel.DialIn(ns)
	if err != nil {
		return err
	}
	defer conn.Close()
	from, err := conn.LinkByName("pa0")
	if err != nil {
		return err
	}
	to, err := conn.LinkByName("pz0")
	if err != nil {
		return err
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R1, int32(to.Index)), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(), asm.Return(),
	}})
	if err != nil {
		return err
	}
	b.undo = append(b.undo, func() { program.Close() })
	return kernel.In(ns, func() error {
		l, err := link.AttachTCX(link.TCXOptions{Interface: from.Index, Program: program, Attach: ebpf.AttachTCXIngress})
		if err == nil {
			b.undo = append(b.undo, func() { l.Close() })
		}
		return err
	})
}

// routers puts n namespaces that route between two nodes: what the kernel's own
// parts take before they do anything.
func (b *builder) routers(n int, filter, apart bool) error {
	i := len(b.subjects)
	name := func(k int) string { return fmt.Sprint("r", i, "-", k) }
	mac := func(k int) string { return fmt.Sprintf("02:00:00:00:01:%02x", k) }
	for k := range n {
		if err := b.space(name(k)); err != nil {
			return err
		}
		if err := b.in(name(k), "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0"); err != nil {
			return err
		}
		if k == 0 {
			continue
		}
		if err := b.join(name(k-1), name(k), mac(k), apart && k == n/2); err != nil {
			return err
		}
		err := b.in(name(k-1), "ip link set out up",
			fmt.Sprintf("ip addr add 10.1.%d.1/24 dev out", k), fmt.Sprintf("ip route add 10.2.0.0/24 via 10.1.%d.2", k),
			fmt.Sprintf("ip neigh replace 10.1.%d.2 lladdr %s dev out", k, mac(k)))
		if err == nil {
			err = b.in(name(k), "ip link set in up", fmt.Sprintf("ip addr add 10.1.%d.2/24 dev in", k))
		}
		if err != nil {
			return err
		}
	}
	a, z := fmt.Sprint("a", i), fmt.Sprint("z", i)
	for _, err := range []error{
		b.node(a, name(0), "in", "02:00:00:00:00:0a"), b.node(z, name(n-1), "last", "02:00:00:00:00:0b"),
		b.in(name(0), "ip link set in address "+mac(0), "ip addr add 10.0.0.1/24 dev in"),
		b.in(name(n-1), "ip addr add 10.2.0.1/24 dev last", "ip neigh replace 10.2.0.2 lladdr 02:00:00:00:00:0b dev last"),
		b.in(a, "ip addr add 10.0.0.2/24 dev eth0", "ip route add default via 10.0.0.1", "ip neigh replace 10.0.0.1 lladdr "+mac(0)+" dev eth0"),
		b.in(z, "ip addr add 10.2.0.2/24 dev eth0"),
	} {
		if err != nil {
			return err
		}
	}
	if filter {
		for k := range n {
			if err := b.filter(name(k)); err != nil {
				return err
			}
		}
	}
	title := fmt.Sprintf("kernel, %d routing namespaces", n)
	if filter {
		title += " with nftables"
	}
	if apart {
		title += ", VXLAN between them"
	}
	return b.add(title, a, "10.0.0.2", z, "10.2.0.2")
}

// join links a namespace that routes with the next one: out there and in here, by a
// cable, or by VXLAN over one.
func (b *builder) join(from, to, mac string, tunnel bool) error {
	if !tunnel {
		return b.in(from, "ip link add out type veth peer name in address "+mac+" netns "+b.host.Path(to))
	}
	err := b.in(from, "ip link add wire type veth peer name wire netns "+b.host.Path(to), "ip link set wire up mtu 9000", "ip addr add 172.16.0.1/24 dev wire",
		"ip link add out type vxlan id 7 remote 172.16.0.2 dstport 4789 dev wire")
	if err == nil {
		err = b.in(to, "ip link set wire up mtu 9000", "ip addr add 172.16.0.2/24 dev wire", "ip link add in address "+mac+" type vxlan id 7 remote 172.16.0.1 dstport 4789 dev wire")
	}
	return err
}

// filter has a namespace drop what the firewalls of chains do.
func (b *builder) filter(space string) error {
	ns, err := b.host.Open(space)
	if err != nil {
		return err
	}
	defer ns.Close()
	c, err := nftables.New(nftables.WithNetNSFd(int(ns.Fd())))
	if err != nil {
		return err
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "bench"})
	chain := c.AddChain(&nftables.Chain{Name: "forward", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0, 23}},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}})
	return c.Flush()
}

// clean takes everything away.
func (b *builder) clean() {
	for _, undo := range b.undo {
		undo()
	}
	if b.far != nil {
		b.far.clean()
	}
	if err := b.part.Delete(fabric); err != nil {
		fmt.Fprintln(os.Stderr, "clean up:", err)
	}
	b.part.Close()
	for _, s := range b.spaces {
		if err := kernel.Unbind(b.host.Path(s)); err != nil {
			fmt.Fprintln(os.Stderr, "clean up:", err)
		}
	}
}
