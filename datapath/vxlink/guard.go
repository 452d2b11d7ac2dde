package vxlink

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"sublet/datapath/kernel"
)

// The kernel's VXLAN takes a packet from whoever knows its number. So a
// program on each uplink stamps what comes in by it with a digest of the
// sender's address, if its source port is one that only root can use, and the
// program on a tunnel drops what does not bear its peer's stamp: packets of
// other hosts, of users of any host, this one too, and those that came by no
// uplink. Root of a host of the substrate, and who can forge addresses there,
// passes.

// Source ports of tunnels: below 1024 they take CAP_NET_BIND_SERVICE.
const (
	firstSource, lastSource = 512, 1023
	userPorts               = 1024
)

// guardPriority leaves room for others' filters on the uplink, before and after.
const guardPriority = 4789

// guardName tells the program's version.
const guardName = "sl:guard:1"

// indexOffset and protocolOffset are those of __sk_buff.tc_index, the stamp,
// and of __sk_buff.protocol, in network order (linux/bpf.h).
const (
	indexOffset    = 44
	protocolOffset = 16
	networkHeader  = 1 // BPF_HDR_START_NET
	notDecided     = -1
	drop           = 2
)

// stampOf is the stamp of a sender: the last four bytes of his address folded
// into two, never 0.
func stampOf(sender netip.Addr) uint16 {
	bytes := sender.AsSlice()
	last := binary.NativeEndian.Uint32(bytes[len(bytes)-4:])
	if stamp := uint16(last) ^ uint16(last>>16); stamp != 0 {
		return stamp
	}
	return 0xffff
}

// ipHeader says where an IP header has what the guard looks at.
type ipHeader struct {
	protocol          uint16 // EtherType
	first, mask       int32  // byte: version, and length without options
	next, source, end int16
}

var headers = map[string]ipHeader{
	"v4": {protocol: 0x0800, first: 0x45, mask: 0xff, next: 9, source: 12, end: 20},
	"v6": {protocol: 0x86dd, first: 0x60, mask: 0xf0, next: 6, source: 20, end: 40},
}

// guardProgram stamps.
func guardProgram() (*ebpf.Program, error) {
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.Mov.Imm(asm.R7, 0),
		asm.LoadMem(asm.R2, asm.R6, protocolOffset, asm.Word),
		asm.JEq.Imm(asm.R2, inMemory(headers["v4"].protocol), "v4"),
		asm.JEq.Imm(asm.R2, inMemory(headers["v6"].protocol), "v6"),
		asm.Ja.Label("stamp"),
	}
	code = append(code, headers["v4"].sender("v4")...)
	code = append(code, headers["v6"].sender("v6")...)
	code = append(code,
		asm.StoreMem(asm.R6, indexOffset, asm.R7, asm.Word).WithSymbol("stamp"),
		asm.Mov.Imm(asm.R0, notDecided),
		asm.Return(),
	)
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "sublet_guard", Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: code})
	if err != nil {
		return nil, fmt.Errorf("load the program %s: %w", guardName, err)
	}
	return p, nil
}

// inMemory is a number of network order as the machine loads it.
func inMemory(v uint16) int32 {
	return int32(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v)))
}

// sender leaves the stamp in R7, or 0 if the packet is not UDP without options
// from a port of root's.
func (h ipHeader) sender(symbol string) asm.Instructions {
	const buffer = -48 // on the stack: the IP header and the ports behind it
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol(symbol),
		asm.Mov.Imm(asm.R2, 0),
		asm.Mov.Reg(asm.R3, asm.R10),
		asm.Add.Imm(asm.R3, buffer),
		asm.Mov.Imm(asm.R4, int32(h.end)+4),
		asm.Mov.Imm(asm.R5, networkHeader),
		asm.FnSkbLoadBytesRelative.Call(),
		asm.JNE.Imm(asm.R0, 0, "stamp"),
		asm.LoadMem(asm.R1, asm.R10, buffer, asm.Byte),
		asm.And.Imm(asm.R1, h.mask),
		asm.JNE.Imm(asm.R1, h.first, "stamp"),
		asm.LoadMem(asm.R1, asm.R10, buffer+h.next, asm.Byte),
		asm.JNE.Imm(asm.R1, 17, "stamp"), // UDP
		asm.LoadMem(asm.R1, asm.R10, buffer+h.end, asm.Half),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.JGE.Imm(asm.R1, userPorts, "stamp"),
		asm.LoadMem(asm.R7, asm.R10, buffer+h.source, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.RSh.Imm(asm.R1, 16),
		asm.Xor.Reg(asm.R7, asm.R1),
		asm.And.Imm(asm.R7, 0xffff),
		asm.JNE.Imm(asm.R7, 0, "stamp"),
		asm.Mov.Imm(asm.R7, 0xffff),
		asm.Ja.Label("stamp"),
	}
}

// setGuard puts the program on an uplink unless it is there.
func setGuard(c *kernel.Conn, index int) error {
	there, err := guarded(c, index)
	if err != nil || there {
		return err
	}
	if err := c.SetClsact(index); err != nil {
		return fmt.Errorf("make the filter hook: %w", err)
	}
	program, err := guardProgram()
	if err != nil {
		return err
	}
	defer program.Close()
	if err := c.Do(kernel.SetFilterAt(index, guardPriority, program.FD(), guardName)); err != nil {
		return fmt.Errorf("attach the program %s: %w", guardName, err)
	}
	return nil
}

func guarded(c *kernel.Conn, index int) (bool, error) {
	name, count, err := c.FilterAt(index, guardPriority)
	return count == 1 && name == guardName, err
}

// removeGuard takes the program away, and the hook unless others use it.
func removeGuard(c *kernel.Conn, index int) error {
	if err := c.DeleteFilterAt(index, guardPriority); err != nil {
		return fmt.Errorf("remove the program %s: %w", guardName, err)
	}
	left, err := c.Filters(index)
	if err != nil || left > 0 {
		return err
	}
	return c.DeleteQdisc(index, kernel.TCClsact)
}
