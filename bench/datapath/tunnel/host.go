package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"sublet/bench/harness"
	"sublet/datapath/kernel"
	"sublet/datapath/overlay"
	"sublet/plan"
	"sublet/vnet"
)

// host is one host, whose interface drops and counts everything that leaves
// when it is alone.
type host struct {
	*kernel.Host
	side
	run     string
	part    *overlay.Part
	peer    string // namespace file of the wire's other end
	count   *ebpf.Map
	cleanup []func()
}

const wire = "phy0"

// side is what a host and the other one are called: on the wire, inside the
// tunnels, and in Ethernet on both.
type side struct {
	name            string
	local, remote   string
	inner, beyond   string
	macOf, macOther string
}

var (
	here  = side{"h", "10.99.0.1", "10.99.0.2", "10.0.0.1", "10.0.0.2", "02:00:00:00:00:01", "02:00:00:00:00:02"}
	there = side{"g", here.remote, here.local, here.beyond, here.inner, here.macOther, here.macOf}
)

// newHost makes a host with a wire that ends at nobody.
func newHost() (*host, error) {
	run, err := os.MkdirTemp("/run", "sl-overlay-")
	if err != nil {
		return nil, err
	}
	h := &host{run: run, side: here}
	h.later(func() { os.RemoveAll(run) })
	if err = h.build(); err == nil {
		err = h.dropAll(h.Namespace)
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *host) later(f func()) { h.cleanup = append(h.cleanup, f) }

func (h *host) close() {
	for i := len(h.cleanup) - 1; i >= 0; i-- {
		h.cleanup[i]()
	}
}

// build makes the host's namespace, its wire, and what is at the other end.
func (h *host) build() (err error) {
	home, err := h.namespace("home/" + h.name)
	if err != nil {
		return err
	}
	if h.peer, err = h.namespace("home/" + there.name); err != nil {
		return err
	}
	err = h.in(home, "ip link add "+wire+" type veth peer name "+wire+" netns "+h.peer)
	if err != nil {
		return err
	}
	if err := h.in(h.peer, "ip link set "+wire+" mtu 9000 up"); err != nil {
		return err
	}
	return h.settle(home)
}

// settle gives a host its end of the wire and its overlay.
func (h *host) settle(home string) (err error) {
	if h.Host, err = kernel.NewHost(kernel.Config{Host: h.name, Run: h.run, Namespace: home}); err != nil {
		return err
	}
	h.part = overlay.New(h.Host)
	h.later(func() { h.part.Close(); h.Host.Close() })
	return h.in(home,
		"ip link set "+wire+" address "+h.macOf+" mtu 9000 up",
		"ip addr add "+h.local+"/24 dev "+wire,
		"ip neigh replace "+h.remote+" lladdr "+h.macOther+" dev "+wire+" nud permanent")
}

// namespace makes a namespace file in the run directory.
func (h *host) namespace(name string) (string, error) {
	path := filepath.Join(h.run, name)
	ns, err := kernel.NewNamespace(func() error { return nil })
	if err != nil {
		return "", err
	}
	defer ns.Close()
	h.later(func() { kernel.Unbind(path) })
	return path, kernel.Bind(ns, path)
}

// in runs commands in a namespace.
func (h *host) in(namespace string, lines ...string) error {
	for i := range lines {
		lines[i] = "nsenter --net=" + namespace + " -- " + lines[i]
	}
	return harness.Commands(lines...)
}

// dropAll counts and drops what leaves by the wire.
func (h *host) dropAll(home string) (err error) {
	h.count, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return err
	}
	h.later(func() { h.count.Close() })
	return h.attach(home, wire, ebpf.AttachTCXEgress, asm.Instructions{
		asm.StoreImm(asm.R10, -4, 0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, h.count.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 2).WithSymbol("out"), // TCX_DROP
		asm.Return(),
	})
}

// left is how many packets left by the wire so far.
func (h *host) left() (sum uint64, err error) {
	var each []uint64
	if err := h.count.Lookup(uint32(0), &each); err != nil {
		return 0, err
	}
	for _, n := range each {
		sum += n
	}
	return sum, nil
}

// attach puts a program on a device's hook, for the life of the process.
func (h *host) attach(namespace, device string, hook ebpf.AttachType, code asm.Instructions) error {
	ns, err := kernel.OpenNamespace(namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	index, err := h.index(namespace, device)
	if err != nil {
		return err
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "bench", Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: code})
	if err != nil {
		return err
	}
	defer p.Close()
	return kernel.In(ns, func() error {
		l, err := link.AttachTCX(link.TCXOptions{Interface: index, Program: p, Attach: hook})
		if err == nil {
			h.later(func() { l.Close() })
		}
		return err
	})
}

func (h *host) index(namespace, device string) (int, error) {
	ns, err := kernel.OpenNamespace(namespace)
	if err != nil {
		return 0, err
	}
	defer ns.Close()
	c, err := kernel.DialIn(ns)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	l, err := c.LinkByName(device)
	return l.Index, err
}

// redirect is a program that marks and sends a packet to a device: to its
// queue, or to its peer's other namespace.
func redirect(mark int32, index int, peer bool) asm.Instructions {
	call := asm.FnRedirect.Call()
	if peer {
		call = asm.FnRedirectPeer.Call()
	}
	const markOffset = 8 // of __sk_buff.mark
	return asm.Instructions{
		asm.Mov.Imm32(asm.R2, mark),
		asm.StoreMem(asm.R1, markOffset, asm.R2, asm.Word),
		asm.Mov.Imm32(asm.R1, int32(index)),
		asm.Mov.Imm(asm.R2, 0),
		call,
		asm.Return(),
	}
}

// node makes a node whose packets come out at port l0a of a fabric, and
// reserves headroom as a bridge with a tunnel port does.
func (h *host) node(lease vnet.LeaseID) (node, fabric string, err error) {
	if fabric, err = h.namespace("netns/" + h.name + "/" + plan.Fabric(lease)); err != nil {
		return "", "", err
	}
	if node, err = h.namespace("netns/" + h.name + "/" + plan.Namespace(lease, "n")); err != nil {
		return "", "", err
	}
	err = h.in(node,
		"ip link add eth0 address "+h.macOf+" type veth peer name l0a netns "+fabric,
		"ip addr add "+h.inner+"/24 dev eth0", "ip link set eth0 mtu 1400 up",
		"ip neigh replace "+h.beyond+" lladdr "+h.macOther+" dev eth0 nud permanent")
	if err == nil {
		err = h.in(fabric,
			"ip link add room type bridge", "ip link add roomy type vxlan id 1 dstport 4789 local ::1",
			"ip link set roomy master room", "ip link set l0a master room", "ip link set l0a up")
	}
	return node, fabric, err
}

// trunk makes a lease's trunk and sends what enters by l0a to it, marked.
func (h *host) trunk(lease vnet.LeaseID, fabric string) error {
	home := h.Namespace
	err := errors.Join(
		h.in(home, "ip link add "+plan.Trunk(lease)+" type veth peer name "+plan.TrunkInside+" netns "+fabric),
		h.in(fabric, "ip link set "+plan.TrunkInside+" up"),
		h.in(home, "ip link set "+plan.Trunk(lease)+" up"))
	if err != nil {
		return err
	}
	index, err := h.index(fabric, plan.TrunkInside)
	if err != nil {
		return err
	}
	return h.attach(fabric, "l0a", ebpf.AttachTCXIngress, redirect(number, index, true))
}

const number = 1 << 20

func (h *host) tunnel(lease vnet.LeaseID, vni vnet.VNI, protocol vnet.Encapsulation) error {
	item := plan.Overlay{
		Lease: lease, Link: "l", VNI: vni, Protocol: protocol, Interface: wire,
		Local: addr(h.local), Remote: addr(h.remote), MTU: 1400, Ethernet: h.macOf + " " + h.macOther,
	}
	h.later(func() { _ = h.part.Do(context.Background(), plan.Step{Op: plan.Delete, Item: item}) })
	if err := h.part.Do(context.Background(), plan.Step{Op: plan.Add, Item: item}); err != nil {
		return fmt.Errorf("make a tunnel of %s: %w", protocol, err)
	}
	return nil
}
