package device

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/internal/stall"
	"sublet/plan"
	"sublet/vnet"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ground is a host with an interface eth5 and the namespace of a node.
type ground struct {
	t      *testing.T
	host   *kernel.Host
	home   *kernel.Conn
	inside *kernel.Conn
	far    *os.File // namespace at the other end of the wire
	part   *Part
	first  kernel.Link
	before string // what ip and tc say of it
}

var tester = plan.Device{Lease: vnet.LeaseID{Tenant: "alice", Network: "demo"}, Node: "a", Name: "tester", Interface: "eth5"}

func newGround(t *testing.T) *ground {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	run := t.TempDir()
	g := &ground{t: t}
	home := g.namespace(filepath.Join(run, "homes", "h1"))
	var err error
	g.host, err = kernel.NewHost(kernel.Config{Host: "h1", Run: run, Namespace: home})
	check(t, err)
	t.Cleanup(func() { g.host.Close() })
	g.home, err = g.host.Dial("")
	check(t, err)
	t.Cleanup(func() { g.home.Close() })
	g.far, err = os.Open(g.namespace(filepath.Join(run, "homes", "far")))
	check(t, err)
	t.Cleanup(func() { g.far.Close() })
	g.interfaceUp()
	g.node()
	g.part = New(g.host)
	return g
}

// interfaceUp makes eth5 with a wire to far, and settings of an operator's.
func (g *ground) interfaceUp() {
	g.t.Helper()
	check(g.t, kernel.In(g.host.Home(), func() error { return kernel.Sysctl("ipv6/conf/default/accept_dad", "0") })) // which takes a second
	const vethPeer = 1                                                                                               // VETH_INFO_PEER, linux/veth.h
	check(g.t, g.home.Do(kernel.NewLink("eth5", "veth", func(m *kernel.Message) {
		m.Nest(vethPeer, func() {
			m.Raw(kernel.LinkHeader(0, 0, 0)).String(unix.IFLA_IFNAME, "eth5").Uint32(unix.IFLA_NET_NS_FD, uint32(g.far.Fd()))
		})
	})))
	check(g.t, kernel.In(g.far, func() error { return run("ip address add 10.60.0.1/24 dev eth5", "ip link set eth5 up") }))
	check(g.t, kernel.In(g.host.Home(), func() error {
		return run("ip link set eth5 mtu 1400 up", "tc qdisc add dev eth5 root pfifo limit 77", "ip route add 10.60.0.0/24 dev eth5")
	}))
	g.first = g.below()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}}) // XDP_PASS
	check(g.t, err)
	defer program.Close()
	check(g.t, kernel.In(g.host.Home(), func() error {
		l, err := link.AttachXDP(link.XDPOptions{Program: program, Interface: g.first.Index, Flags: link.XDPGenericMode})
		if err == nil {
			g.t.Cleanup(func() { l.Close() })
		}
		return err
	}))
	stall.Wait(g.t, 5*time.Second, 10*time.Millisecond, func() error { // until it has its link-local address
		if g.before = g.said(); strings.Contains(g.before, "inet6") && !strings.Contains(g.before, "tentative") {
			return nil
		}
		return errors.New(g.before)
	})
	g.first = g.below()
}

func run(commands ...string) error {
	for _, c := range commands {
		f := strings.Fields(c)
		if out, err := exec.Command(f[0], f[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", c, err, out)
		}
	}
	return nil
}

// said is what the host's tools say of the interface.
func (g *ground) said() (text string) {
	g.t.Helper()
	check(g.t, kernel.In(g.host.Home(), func() error {
		for _, c := range []string{"ip -d address show dev eth5", "tc qdisc show dev eth5", "ip route show dev eth5"} {
			f := strings.Fields(c)
			out, err := exec.Command(f[0], f[1:]...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s: %w: %s", c, err, out)
			}
			text += string(out)
		}
		return nil
	}))
	return text
}

// answersARP says whether the host answers who asks at the wire for an address.
func (g *ground) answersARP(a netip.Addr) (answers bool) {
	g.t.Helper()
	check(g.t, kernel.In(g.far, func() error {
		_ = run("ip neighbour del " + a.String() + " dev eth5")
		if err := run("ip route replace " + a.String() + " dev eth5"); err != nil {
			return err
		}
		_ = run("ping -n -c 1 -W 2 " + a.String()) // which need not be answered, but asks
		out, err := exec.Command("ip", "neighbour", "show", a.String(), "dev", "eth5").Output()
		answers = strings.Contains(string(out), "lladdr")
		return err
	}))
	return answers
}

// namespace makes a namespace file for the life of the test.
func (g *ground) namespace(path string) string {
	g.t.Helper()
	ns, err := kernel.NewNamespace(func() error { return nil })
	check(g.t, err)
	defer ns.Close()
	check(g.t, kernel.Bind(ns, path))
	g.t.Cleanup(func() { kernel.Unbind(path) })
	return path
}

// node makes the node's namespace.
func (g *ground) node() {
	g.namespace(g.host.Path(tester.Key()))
	ns, err := g.host.Open(tester.Key())
	check(g.t, err)
	defer ns.Close()
	g.inside, err = kernel.DialIn(ns)
	check(g.t, err)
	inside := g.inside
	g.t.Cleanup(func() { inside.Close() })
}

func (g *ground) below() kernel.Link {
	g.t.Helper()
	l, err := g.home.LinkByName("eth5")
	check(g.t, err)
	return l
}

func (g *ground) do(op plan.Op) error {
	return g.part.Do(context.Background(), plan.Step{Op: op, Item: tester})
}

func (g *ground) observed() []plan.Device {
	g.t.Helper()
	var host plan.Host
	check(g.t, g.part.Observe(context.Background(), &host))
	if len(host.Unknown) > 0 {
		g.t.Fatalf("could not look at: %v", host.Unknown)
	}
	return plan.Of[plan.Device](host)
}

func (g *ground) there(what string) {
	g.t.Helper()
	if have := g.observed(); !reflect.DeepEqual(have, []plan.Device{tester}) {
		g.t.Errorf("%s: observed %v", what, have)
	}
}

func (g *ground) missing(what string) {
	g.t.Helper()
	if have := g.observed(); len(have) != 1 || have[0] == tester {
		g.t.Errorf("%s: observed %v", what, have)
	}
}

// givenBack compares the interface with what it was before.
func (g *ground) givenBack() {
	g.t.Helper()
	if now := g.below(); now != g.first {
		g.t.Errorf("%+v is not %+v", now, g.first)
	}
	stall.Wait(g.t, 5*time.Second, 10*time.Millisecond, func() error {
		if now := g.said(); now != g.before {
			return fmt.Errorf("the interface is\n%s\nand was\n%s", now, g.before)
		}
		return nil
	})
	if have := g.observed(); have != nil {
		g.t.Errorf("left: %v", have)
	}
}

// device is the node's end.
func (g *ground) device(name string) kernel.Link {
	g.t.Helper()
	l, err := g.inside.LinkByName(name)
	check(g.t, err)
	return l
}

// What the tenant does to the device ends with it, and does not free them of it.
func TestDeviceIsMendedAndGivenBack(t *testing.T) {
	g := newGround(t)
	if have := g.observed(); have != nil {
		t.Fatalf("a new host has %v", have)
	}
	check(t, g.do(plan.Add))
	g.there("made")
	check(t, g.do(plan.Set))
	g.there("made twice")
	l := g.device("tester")
	link := func(attribute uint16, value []byte) {
		t.Helper()
		check(t, g.inside.Do(kernel.NewMessage(unix.RTM_NEWLINK, 0, kernel.LinkHeader(l.Index, 0, unix.IFF_UP)).Attr(attribute, value)))
	}
	link(unix.IFLA_ADDRESS, []byte{2, 0, 0, 0, 0, 9})
	check(t, g.inside.AddAddress(kernel.Address{Index: l.Index, Local: netip.MustParseAddr("10.0.0.1"), Reach: netip.MustParsePrefix("10.0.0.0/24")}))
	g.there("with the tenant's settings")
	link(unix.IFLA_IFNAME, []byte("mine\x00"))
	g.missing("renamed")
	check(t, g.do(plan.Set))
	g.there("mended")
	check(t, g.inside.DeleteLink(g.device("tester").Index))
	check(t, g.inside.Do(kernel.NewLink("tester", "veth", nil)))
	g.missing("another of its name")
	check(t, g.do(plan.Set))
	g.there("mended again")
	check(t, g.do(plan.Delete))
	check(t, g.do(plan.Delete))
	g.givenBack()
}

// A namespace that is deleted behind the part's back takes the device, and another
// agent makes it in the next.
func TestDeviceOfDeletedNamespace(t *testing.T) {
	g := newGround(t)
	check(t, g.do(plan.Add))
	g.inside.Close()
	check(t, kernel.Unbind(g.host.Path(tester.Key())))
	g.part = New(g.host)
	g.missing("without its namespace")
	g.node()
	stall.Wait(t, 5*time.Second, 10*time.Millisecond, func() error { return g.do(plan.Set) }) // the kernel deletes namespaces when it has time
	g.there("in the next namespace")
	g.inside.Close()
	check(t, kernel.Unbind(g.host.Path(tester.Key())))
	check(t, g.do(plan.Delete))
}

// An agent that dies half-way leaves what the next one sees, mends or takes away.
func TestDeviceHalfMade(t *testing.T) {
	for what, half := range map[string]func(*ground){
		"a mark":           func(g *ground) {},
		"rules, no device": func(g *ground) { check(g.t, silence(g.host.Home(), g.part.table(tester.Key()), "eth5")) },
		"a device, no rule": func(g *ground) {
			check(g.t, g.do(plan.Add))
			check(g.t, hear(g.host.Home(), g.part.table(tester.Key())))
		},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGround(t)
			check(t, os.MkdirAll(g.host.Dir(kind), 0o700))
			check(t, os.WriteFile(g.part.mark(tester.Key()), nil, 0o600))
			half(g)
			g.missing("half made")
			check(t, g.do(plan.Set))
			g.there("mended")
			check(t, hear(g.host.Home(), g.part.table(tester.Key())))
			g.missing("heard by the host")
			check(t, g.do(plan.Delete))
			g.givenBack()
		})
	}
}

// An interface that goes takes the device; what comes in its place is given then.
func TestDeviceOfAnInterfaceThatVanishes(t *testing.T) {
	g := newGround(t)
	check(t, g.do(plan.Add))
	check(t, g.home.DeleteLink(g.first.Index))
	g.missing("without its interface")
	if err := g.do(plan.Set); err == nil || !strings.Contains(err.Error(), "interface eth5 of the host") {
		t.Errorf("without its interface: %v", err)
	}
	g.interfaceUp()
	check(t, g.do(plan.Set))
	g.there("on the interface that came")
	check(t, g.do(plan.Delete))
	g.givenBack()
}

// Who sends to all by the interface does not reach the host: neither its ARP nor
// what it says to broadcasts. Afterwards it is as before.
func TestNobodyReachesTheHostByADevice(t *testing.T) {
	g := newGround(t)
	const loopback = 1
	own := netip.MustParseAddr("10.99.0.1")
	check(t, g.home.AddAddress(kernel.Address{Index: loopback, Local: own, Reach: netip.PrefixFrom(own, 32)}))
	check(t, g.home.Do(kernel.UpLink(loopback)))
	answers := func() bool { return g.answersARP(own) }
	if !answers() {
		t.Fatal("a host without a device does not answer: nothing is seen here")
	}
	check(t, g.do(plan.Add))
	if answers() {
		t.Error("the host answers who asks for its address by a tenant's device")
	}
	check(t, g.do(plan.Delete))
	if !answers() {
		t.Error("the host answers no more once the device is given back")
	}
}

// Interfaces that are down, or that the host uses, are no tenant's.
func TestUnusableInterfacesAreRefused(t *testing.T) {
	g := newGround(t)
	reach := kernel.Address{Index: g.first.Index, Local: netip.MustParseAddr("192.0.2.2"), Reach: netip.MustParsePrefix("192.0.2.0/24")}
	check(t, g.home.AddAddress(reach))
	if err := g.do(plan.Add); err == nil || !strings.Contains(err.Error(), "eth5 has the host's address 192.0.2.2") {
		t.Errorf("with an address: %v", err)
	}
	check(t, g.home.DeleteAddress(reach))
	check(t, g.home.Do(kernel.NewMessage(unix.RTM_NEWLINK, 0, kernel.LinkHeader(g.first.Index, 0, unix.IFF_UP))))
	if err := g.do(plan.Add); err == nil || !strings.Contains(err.Error(), "eth5 of the host is down") {
		t.Errorf("that is down: %v", err)
	}
	check(t, g.home.Do(kernel.UpLink(g.first.Index)))
	check(t, kernel.In(g.host.Home(), func() error { return run("ip link add link eth5 name above type macvlan") }))
	if err := g.do(plan.Add); err == nil || !strings.Contains(err.Error(), "eth5 of the host is used by above") {
		t.Errorf("with another on it: %v", err)
	}
	g.missing("refused")
	check(t, g.do(plan.Delete))
	if have := g.observed(); have != nil {
		t.Errorf("left: %v", have)
	}
}
