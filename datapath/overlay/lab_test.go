package overlay

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// lab is two hosts made of namespaces, with a wire between them, and on each a
// fabric with a trunk and a node, as vxlink makes them.
type lab struct {
	t     *testing.T
	run   string
	hosts [2]*host
}

type host struct {
	*kernel.Host
	part *Part
	node string // namespace file
}

var demo = vnet.LeaseID{Tenant: "alice", Network: "demo"}

const (
	wire   = "phy0"
	number = 1<<20 + 7
)

func check1(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newLab(t *testing.T) *lab {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	l := &lab{t: t, run: t.TempDir()}
	for i := range l.hosts {
		l.hosts[i] = l.host(fmt.Sprintf("h%d", i+1))
	}
	l.ip(l.hosts[0].Namespace, "link", "add", wire, "type", "veth", "peer", "name", wire, "netns", l.hosts[1].Namespace)
	for i, h := range l.hosts {
		l.ip(h.Namespace, "addr", "add", netip.PrefixFrom(under4(i), 24).String(), "dev", wire)
		l.ip(h.Namespace, "addr", "add", netip.PrefixFrom(under6(i), 64).String(), "dev", wire, "nodad")
		l.ip(h.Namespace, "link", "set", wire, "mtu", "9000", "up")
	}
	for i, h := range l.hosts {
		l.fabric(i, h)
	}
	return l
}

func under4(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 99, 0, byte(i + 1)}) }

func under6(i int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x99, 15: byte(i + 1)})
}

func inner(i int) string { return fmt.Sprintf("10.0.0.%d", i+1) }

func inner6(i int) string { return fmt.Sprintf("fd00::%d", i+1) }

func mac(i int) string { return fmt.Sprintf("02:00:00:00:00:0%d", i+1) }

func (l *lab) namespace(path string) string {
	l.t.Helper()
	ns, err := kernel.NewNamespace(func() error {
		c, err := kernel.Dial()
		if err != nil {
			return err
		}
		defer c.Close()
		return c.Do(kernel.UpLink(1))
	})
	check1(l.t, err)
	defer ns.Close()
	check1(l.t, kernel.Bind(ns, path))
	l.t.Cleanup(func() { kernel.Unbind(path) })
	return path
}

func (l *lab) host(name string) *host {
	l.t.Helper()
	path := l.namespace(filepath.Join(l.run, "homes", name))
	h, err := kernel.NewHost(kernel.Config{Host: name, Run: l.run, Namespace: path})
	check1(l.t, err)
	made := &host{Host: h, part: New(h)}
	l.t.Cleanup(func() {
		for _, err := range made.empty() {
			l.t.Error(err)
		}
		made.part.Close()
		if _, err := os.Stat(h.Dir("bpf") + "/overlay"); err == nil {
			l.t.Error("pins are left")
		}
		h.Close()
	})
	return made
}

// empty deletes whatever the part has.
func (h *host) empty() (errs []error) {
	var have plan.Host
	if err := h.part.Observe(context.Background(), &have); err != nil {
		return []error{err}
	}
	for _, item := range plan.Of[plan.Overlay](have) {
		if err := h.part.Do(context.Background(), plan.Step{Op: plan.Delete, Item: item}); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// fabric makes node, fabric and trunk: what comes from the node is marked and
// goes to the trunk, what comes by the trunk goes to the node.
func (l *lab) fabric(i int, h *host) {
	l.t.Helper()
	fabric := l.namespace(h.Path(plan.Fabric(demo)))
	h.node = l.namespace(h.Path(plan.Namespace(demo, fmt.Sprintf("n%d", i+1))))
	l.ip(h.node, "link", "add", "eth0", "address", mac(i), "type", "veth", "peer", "name", "l0a", "netns", fabric)
	l.ip(h.node, "addr", "add", inner(i)+"/24", "dev", "eth0")
	l.ip(h.node, "addr", "add", inner6(i)+"/64", "dev", "eth0", "nodad")
	l.ip(h.node, "link", "set", "eth0", "mtu", "1450", "up")
	l.ip(fabric, "link", "set", "l0a", "up")
	l.ip(h.Namespace, "link", "add", plan.Trunk(demo), "type", "veth", "peer", "name", plan.TrunkInside, "netns", fabric)
	l.ip(h.Namespace, "link", "set", plan.Trunk(demo), "arp", "off", "addrgenmode", "none")
	l.ip(fabric, "link", "set", plan.TrunkInside, "arp", "off", "addrgenmode", "none", "up")
	l.patch(fabric, "l0a", plan.TrunkInside, number)
	l.patch(fabric, plan.TrunkInside, "l0a", 0)
}

// patch sends what comes in by one device to the peer of another, with a mark.
func (l *lab) patch(namespace, from, to string, mark int32) {
	l.t.Helper()
	ns, err := kernel.OpenNamespace(namespace)
	check1(l.t, err)
	defer ns.Close()
	c, err := kernel.DialIn(ns)
	check1(l.t, err)
	defer c.Close()
	in, err := c.LinkByName(from)
	check1(l.t, err)
	out, err := c.LinkByName(to)
	check1(l.t, err)
	const markOffset = 8 // of __sk_buff.mark
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "patch", Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: asm.Instructions{
		asm.Mov.Imm32(asm.R2, mark),
		asm.StoreMem(asm.R1, markOffset, asm.R2, asm.Word),
		asm.Mov.Imm32(asm.R1, int32(out.Index)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirectPeer.Call(),
		asm.Return(),
	}})
	check1(l.t, err)
	l.t.Cleanup(func() { p.Close() })
	var hook link.Link
	check1(l.t, kernel.In(ns, func() (err error) {
		hook, err = link.AttachTCX(link.TCXOptions{Interface: in.Index, Program: p, Attach: ebpf.AttachTCXIngress, Anchor: link.Head()})
		return err
	}))
	l.t.Cleanup(func() { hook.Close() })
}

func (l *lab) ip(ns string, args ...string) {
	l.t.Helper()
	l.in(ns, append([]string{"ip"}, args...)...)
}

func (l *lab) in(ns string, argv ...string) string {
	l.t.Helper()
	out, err := l.try(ns, argv...)
	if err != nil {
		l.t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return out
}

func (l *lab) try(ns string, argv ...string) (string, error) {
	out, err := exec.Command("nsenter", append([]string{"--net=" + ns, "--"}, argv...)...).CombinedOutput()
	return string(out), err
}

// item is host i's end of the tunnel.
func item(i int, protocol vnet.Encapsulation, under func(int) netip.Addr) plan.Overlay {
	return plan.Overlay{
		Lease: demo, Link: "n1-n2", VNI: number, Protocol: protocol, Interface: wire,
		Local: under(i), Remote: under(1 - i), MTU: 1450, Ethernet: mac(i) + " " + mac(1-i),
	}
}

// tunnel makes both ends.
func (l *lab) tunnel(protocol vnet.Encapsulation, under func(int) netip.Addr) {
	l.t.Helper()
	for i, h := range l.hosts {
		check1(l.t, h.part.Do(context.Background(), plan.Step{Op: plan.Add, Item: item(i, protocol, under)}))
	}
}

// ping waits for an answer.
func (l *lab) ping(to string, options ...string) {
	l.t.Helper()
	for end := time.Now().Add(5 * time.Second); ; {
		out, err := l.try(l.hosts[0].node, append([]string{"ping", "-c1", "-W0.2", to}, options...)...)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			l.t.Fatalf("no answer from %s: %s\n%s", to, out, l.tell())
		}
	}
}

// tell says what the tables count.
func (l *lab) tell() (text string) {
	for i, h := range l.hosts {
		h.part.mu.Lock()
		if h.part.table != nil {
			zero, _ := h.part.table.counts(0)
			one, _ := h.part.table.counts(1)
			text += fmt.Sprintf("host %d: %+v\n  %+v\n ways %+v\n", i, zero, one, h.part.nextHops)
		}
		h.part.mu.Unlock()
	}
	return text
}

// socket opens a connected UDP socket in a namespace.
func (l *lab) socket(namespace, from, to string) net.Conn {
	l.t.Helper()
	ns, err := kernel.OpenNamespace(namespace)
	check1(l.t, err)
	defer ns.Close()
	local, err := net.ResolveUDPAddr("udp", from)
	check1(l.t, err)
	var c net.Conn
	check1(l.t, kernel.In(ns, func() (err error) {
		c, err = (&net.Dialer{LocalAddr: local}).Dial("udp", to)
		return err
	}))
	return c
}
