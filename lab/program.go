package lab

import (
	"fmt"
	"sublet/datapath/bpf"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Offsets in struct __sk_buff (linux/bpf.h) and in an Ethernet frame.
const (
	protocolOffset = 16 // of the EtherType, in network order
	priorityOffset = 32
	tosOffset      = 14 + 1
	ipv4InMemory   = 0x0008 // ETH_P_IP in network order, read little endian
	dscpMask       = 0xfc
	controlTOS     = 0xc0 // CS6: routing protocols (RFC 4594)
)

// crossing is the program of a wire: an IPv4 packet without the leased mark, or
// that of routing protocols, goes to the class rest, all else to leased (address
// resolution too: without it and routing, leased packets would not find their
// way through a busy wire); then out
// by the other device. HTB takes skb->priority for the class.
func crossing(device int, leased, rest uint32) (*ebpf.Program, error) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "sublet_lab_wire", Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.Mov.Imm(asm.R7, int32(leased)),
			asm.LoadMem(asm.R2, asm.R6, protocolOffset, asm.Word),
			asm.JNE.Imm(asm.R2, ipv4InMemory, "out"),
			asm.LoadAbs(tosOffset, asm.Byte), // ends the program, and the packet, if there is none
			asm.And.Imm(asm.R0, dscpMask),
			asm.JEq.Imm(asm.R0, bpf.TOSLease, "out"),
			asm.JEq.Imm(asm.R0, controlTOS, "out"),
			asm.Mov.Imm(asm.R7, int32(rest)),
			asm.StoreMem(asm.R6, priorityOffset, asm.R7, asm.Word).WithSymbol("out"),
			asm.Mov.Imm(asm.R1, int32(device)),
			asm.Mov.Imm(asm.R2, 0), // to egress
			asm.FnRedirect.Call(),
			asm.Return(),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("load the program of a wire: %w", err)
	}
	return p, nil
}
