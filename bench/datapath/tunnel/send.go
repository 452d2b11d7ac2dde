package main

import (
	"fmt"
	"net/netip"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cilium/ebpf"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// sender sends from a namespace to an address.
type sender struct{ namespace, to string }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// variants makes all ways of packets.
func (h *host) variants() ([]variant, error) {
	stack := variant{name: "no tunnel, sender in the host", sender: sender{h.Namespace, h.remote}}
	inside, err := h.kernelInside()
	if err != nil {
		return nil, err
	}
	none, err := h.none()
	if err != nil {
		return nil, err
	}
	device, err := h.kernelDevice(none.name)
	if err != nil {
		return nil, err
	}
	all := []variant{stack, {name: "kernel VXLAN device, sender in the host", base: stack.name, sender: inside}, none, device}
	for i, p := range protocols {
		lease := vnet.LeaseID{Tenant: "t", Network: vnet.VNetID(p)}
		node, fabric, err := h.node(lease)
		if err == nil {
			err = h.trunkTo(lease, fabric, vnet.VNI(number+i), p)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, variant{"overlay " + string(p), none.name, sender{node, h.beyond}})
	}
	return all, nil
}

func (h *host) trunkTo(lease vnet.LeaseID, fabric string, vni vnet.VNI, p vnet.Encapsulation) error {
	home := h.Namespace
	if err := h.in(home, "ip link add "+plan.Trunk(lease)+" type veth peer name "+plan.TrunkInside+" netns "+fabric); err != nil {
		return err
	}
	if err := h.in(fabric, "ip link set "+plan.TrunkInside+" up"); err != nil {
		return err
	}
	index, err := h.index(fabric, plan.TrunkInside)
	if err == nil {
		err = h.attach(fabric, "l0a", ebpf.AttachTCXIngress, redirect(int32(vni), index, true))
	}
	if err != nil {
		return err
	}
	return h.tunnel(lease, vni, p)
}

// none is the way of the overlay without a tunnel: the same devices and hops.
func (h *host) none() (variant, error) {
	lease := vnet.LeaseID{Tenant: "t", Network: "none"}
	node, fabric, err := h.node(lease)
	if err == nil {
		err = h.trunk(lease, fabric)
	}
	if err != nil {
		return variant{}, err
	}
	index, err := h.index(h.Namespace, wire)
	if err == nil {
		err = h.attach(h.Namespace, plan.Trunk(lease), ebpf.AttachTCXIngress, redirect(0, index, false))
	}
	return variant{name: "no tunnel", sender: sender{node, h.beyond}}, err
}

const vxlan = "ip link add %s type vxlan id %d local %s remote %s dev " + wire + " dstport 4789 noudpcsum"

// kernelDevice is the kernel's VXLAN device in the fabric, as links had it
// before there was an overlay.
func (h *host) kernelDevice(base string) (variant, error) {
	lease := vnet.LeaseID{Tenant: "t", Network: "kernel"}
	node, fabric, err := h.node(lease)
	if err == nil {
		err = h.in(h.Namespace, fmt.Sprintf(vxlan, "l0b", 77, h.local, h.remote), "ip link set l0b netns "+fabric)
	}
	if err == nil {
		err = h.in(fabric, "ip link set l0b up")
	}
	if err != nil {
		return variant{}, err
	}
	index, err := h.index(fabric, "l0b")
	if err == nil {
		err = h.attach(fabric, "l0a", ebpf.AttachTCXIngress, redirect(0, index, false))
	}
	return variant{kernelVariant, base, sender{node, h.beyond}}, err
}

// kernelInside is the kernel's VXLAN device beside the sender.
func (h *host) kernelInside() (sender, error) {
	err := h.in(h.Namespace, fmt.Sprintf(vxlan, "vx", 78, h.local, h.remote), "ip addr add 10.0.1.1/24 dev vx", "ip link set vx up",
		"ip neigh replace 10.0.1.2 lladdr "+h.macOther+" dev vx nud permanent")
	return sender{h.Namespace, "10.0.1.2"}, err
}

// measure sends for a while and returns what a packet that left took, in
// nanoseconds of the processor.
func (h *host) measure(s sender) (float64, error) {
	runtime.LockOSThread() // and never unlocked: the thread ends pinned
	ns, err := kernel.OpenNamespace(s.namespace)
	if err != nil {
		return 0, err
	}
	defer ns.Close()
	done := make(chan error, 1)
	var cost float64
	go func() {
		runtime.LockOSThread()
		var err error
		cost, err = h.send(ns.Fd(), s.to)
		done <- err
	}()
	err = <-done
	runtime.UnlockOSThread()
	return cost, err
}

// batch is how many packets one call sends.
const batch = 64

type mmsghdr struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
}

// send runs on a thread of its own, on processor 0.
func (h *host) send(ns uintptr, to string) (float64, error) {
	if err := unix.Setns(int(ns), unix.CLONE_NEWNET); err != nil {
		return 0, err
	}
	var cpu unix.CPUSet
	cpu.Set(0)
	if err := unix.SchedSetaffinity(0, &cpu); err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: addr(to).As4()}); err != nil {
		return 0, err
	}
	payload := make([]byte, 18)
	iov := unix.Iovec{Base: &payload[0], Len: uint64(len(payload))}
	var messages [batch]mmsghdr
	for i := range messages {
		messages[i].header.Iov, messages[i].header.Iovlen = &iov, 1
	}
	burst := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); {
			for range 8 {
				unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&messages[0])), batch, 0, 0, 0)
			}
		}
	}
	burst(*window / 10)
	return h.meter(func() { burst(*window) })
}

// meter is the thread's processor time for each packet that left meanwhile.
func (h *host) meter(work func()) (float64, error) {
	before, err := h.left()
	if err != nil {
		return 0, err
	}
	begun := threadTime()
	work()
	took := threadTime() - begun
	after, err := h.left()
	if err != nil || after == before {
		return 0, fmt.Errorf("nothing left the host: %w", err)
	}
	return float64(took) / float64(after-before), nil
}

func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
