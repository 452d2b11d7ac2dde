package pktgen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// ErrNoFar says that a place's device is not one of a pair.
var ErrNoFar = errors.New("not one of a pair of devices")

// Enter is Arrive with frames that the kernel makes itself (live frames of a
// test run, kernel 5.18) where they leave the sender's pair of devices: the
// cost of the path alone, without sender and pair. ErrNoFar: there is no pair.
func Enter(from, to Place, size, cpu int, window time.Duration) (float64, error) {
	return counted(from, to, window, cpu, func() (*Counter, error) { return CountAt(to, Discard) },
		func(next hop) (Worker, error) { return enter(from, to, next, size, cpu) })
}

func enter(from, to Place, next hop, size, cpu int) (Worker, error) {
	entry, index, err := from.far()
	if err != nil {
		return Worker{}, err
	}
	first := frame(from, to, next, size, firstPort, Discard)
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Dual BSD/GPL", Instructions: renew(first)})
	if err != nil {
		entry.Close()
		return Worker{}, fmt.Errorf("load the program that lets frames in: %w", err)
	}
	run := &ebpf.RunOptions{
		Data: first, Repeat: 64 * burst, Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES,
		Context: liveContext{End: uint32(size), Interface: uint32(index)},
	}
	return pinned(cpu, func(stop chan struct{}) error {
		defer entry.Close()
		defer program.Close()
		return kernel.In(entry, func() error { return runUntil(stop, program, run) })
	}), nil
}

// liveContext is struct xdp_md.
type liveContext struct{ Data, End, Meta, Interface, Queue, Egress uint32 }

func runUntil(stop chan struct{}, program *ebpf.Program, run *ebpf.RunOptions) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if _, err := program.Run(run); err != nil {
			return err
		}
	}
}

// headers is what of a frame is written anew each time: Ethernet, IPv4, UDP.
const headers = 42

// renew writes the frame's headers, with one of the flows' source ports, and
// lets it in: the kernel hands out the same memory again, as the last path
// changed it.
func renew(frame []byte) asm.Instructions {
	const portAt, pass = 34, 2
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.FnGetPrandomU32.Call(),
		asm.And.Imm(asm.R0, flows-1),
		asm.Add.Imm(asm.R0, firstPort),
		asm.HostTo(asm.BE, asm.R0, asm.Half),
		asm.LoadMem(asm.R1, asm.R6, 0, asm.Word),
		asm.LoadMem(asm.R2, asm.R6, 4, asm.Word),
		asm.Mov.Reg(asm.R3, asm.R1),
		asm.Add.Imm(asm.R3, headers),
		asm.JGT.Reg(asm.R3, asm.R2, "out"),
	}
	for at := 0; at < headers; at += 2 {
		if at != portAt {
			code = append(code, asm.StoreImm(asm.R1, int16(at), int64(binary.NativeEndian.Uint16(frame[at:])), asm.Half))
		}
	}
	return append(code,
		asm.StoreMem(asm.R1, portAt, asm.R0, asm.Half),
		asm.Mov.Imm(asm.R0, pass).WithSymbol("out"),
		asm.Return(),
	)
}

// Until is Arrive with the frames counted and dropped at the far end of the pair
// of devices that they leave a place by: the cost of the way so far.
func Until(from, to, stop Place, size, cpu int, window time.Duration) (float64, error) {
	ns, index, err := stop.far()
	if err != nil {
		return 0, err
	}
	defer ns.Close()
	count := func() (*Counter, error) { return dropAt(ns, index, ebpf.AttachTCXIngress, nil) }
	return counted(from, to, window, cpu, count, sender(from, to, size, cpu))
}

// far is the other end of a place's pair of devices: its namespace, and its
// number there.
func (p Place) far() (*os.File, int, error) {
	device, err := p.Link()
	if err != nil {
		return nil, 0, err
	}
	a := device.Attrs()
	if device.Type() != "veth" || a.ParentIndex == 0 {
		return nil, 0, fmt.Errorf("follow %s: %w", p.Device, ErrNoFar)
	}
	if a.NetNsID < 0 {
		ns, err := kernel.OpenNamespace(fmt.Sprintf("/proc/self/fd/%d", p.NS.Fd()))
		return ns, a.ParentIndex, err
	}
	ns, err := p.numbered(a.NetNsID)
	return ns, a.ParentIndex, err
}

// numbered finds the namespace that a place's namespace knows by a number,
// among those that are bound to a file.
func (p Place) numbered(id int) (*os.File, error) {
	h, err := netlink.NewHandleAt(netns.NsHandle(p.NS.Fd()))
	if err != nil {
		return nil, err
	}
	defer h.Close()
	mounts, err := kernel.Mounts(kernel.OwnMounts)
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		if !strings.HasPrefix(m.Root, "net:[") {
			continue
		}
		ns, err := kernel.OpenNamespace(m.Point)
		if err != nil {
			continue // removed since
		}
		if known, err := h.GetNetNsIdByFd(int(ns.Fd())); err == nil && known == id {
			return ns, nil
		}
		ns.Close()
	}
	return nil, fmt.Errorf("%s: the other end's namespace is bound to no file", p.Device)
}
