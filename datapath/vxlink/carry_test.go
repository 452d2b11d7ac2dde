package vxlink

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// Offsets in struct __sk_buff (linux/bpf.h).
const (
	markOffset, vlanPresentOffset, vlanOffset = 8, 20, 24
	vlanProtocol                              = 0x0081 // 802.1Q in network order
)

// carry stands in for the part that encapsulates: it puts the mark of what
// comes out of a trunk into a VLAN tag, and back, between the trunk of the demo
// lease and phy0. It adds no bytes that a queue counts.
func (b *bench) carry(h *kernel.Host) {
	b.t.Helper()
	c, err := h.Dial("")
	check(b.t, err)
	defer c.Close()
	trunk, err := c.LinkByName(plan.Trunk(demo))
	check(b.t, err)
	uplink, err := c.LinkByName("phy0")
	check(b.t, err)
	pins, err := bpf.OpenPins(h, "carry")
	check(b.t, err)
	b.t.Cleanup(func() { pins.Unpin(); pins.Close() })
	for name, p := range map[string]struct {
		index int
		code  asm.Instructions
	}{
		"out": {trunk.Index, asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R3, asm.R1, markOffset, asm.Word),
			asm.Mov.Imm(asm.R2, vlanProtocol),
			asm.FnSkbVlanPush.Call(),
			asm.Mov.Imm(asm.R1, int32(uplink.Index)),
			asm.Mov.Imm(asm.R2, 0),
			asm.FnRedirect.Call(),
			asm.Return(),
		}},
		"in": {uplink.Index, asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.Mov.Imm(asm.R0, -1),
			asm.LoadMem(asm.R7, asm.R1, vlanPresentOffset, asm.Word),
			asm.JEq.Imm(asm.R7, 0, "end"),
			asm.LoadMem(asm.R7, asm.R1, vlanOffset, asm.Word),
			asm.And.Imm(asm.R7, 0xfff),
			asm.FnSkbVlanPop.Call(),
			asm.StoreMem(asm.R6, markOffset, asm.R7, asm.Word),
			asm.Mov.Imm(asm.R1, int32(trunk.Index)),
			asm.Mov.Imm(asm.R2, 0),
			asm.FnRedirectPeer.Call(),
			asm.Return().WithSymbol("end"),
		}},
	} {
		program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: name, Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: p.code})
		check(b.t, err)
		check(b.t, pins.Attach(name, bpf.Hook{Namespace: h.Home(), Index: p.index, Attach: ebpf.AttachTCXIngress, First: true}, program))
		program.Close()
	}
}

// unpin removes what a test's part left pinned.
func unpin(t *testing.T, h *kernel.Host) {
	pins, err := bpf.OpenPins(h, "vxlink")
	check(t, err)
	check(t, pins.Unpin())
	check(t, pins.Close())
}

// pins lists what is pinned.
func pins(h *kernel.Host) []string {
	files, _ := filepath.Glob(filepath.Join(h.Dir("bpf"), "vxlink", "*"))
	return files
}

func nothingPinned(t *testing.T, h *kernel.Host) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(h.Dir("bpf"), "vxlink")); !os.IsNotExist(err) {
		t.Errorf("left pinned: %v %v", pins(h), err)
	}
}
