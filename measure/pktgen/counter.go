package pktgen

import (
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"sublet/datapath/kernel"
)

// Counter is a program first on one hook of a device that counts datagrams and drops
// them, so that what comes after the path costs nothing.
type Counter struct {
	program *ebpf.Program
	attach  link.Link
	counter *ebpf.Map
}

// counted is what of a datagram to the discard port is looked at: bytes from
// the start of the Ethernet header.
const (
	protocolAt = 23
	portAt     = 36
)

// CountAt counts and drops the load for a port that arrives at a place, so that what
// comes after the path costs nothing, whatever the path is made of.
func CountAt(p Place, port int) (*Counter, error) {
	return p.drop(ebpf.AttachTCXIngress, matchPort(int32(port)))
}

// CountOut counts and drops every datagram that is about to leave by a wire,
// in a tunnel or not.
func CountOut(p Place) (*Counter, error) { return p.drop(ebpf.AttachTCXEgress, nil) }

// CountIn counts and drops every frame that arrives at a place, whatever
// headers it has.
func CountIn(p Place) (*Counter, error) {
	device, err := p.Link()
	if err != nil {
		return nil, err
	}
	return dropWith(p.NS, device.Attrs().Index, ebpf.AttachTCXIngress, countIt)
}

func (p Place) drop(at ebpf.AttachType, match asm.Instructions) (*Counter, error) {
	device, err := p.Link()
	if err != nil {
		return nil, err
	}
	return dropAt(p.NS, device.Attrs().Index, at, match)
}

// dropAt counts and drops the datagrams on one hook of a device that match.
func dropAt(ns *os.File, device int, at ebpf.AttachType, match asm.Instructions) (*Counter, error) {
	return dropWith(ns, device, at, func(counter int) asm.Instructions { return countAndDrop(counter, match) })
}

func dropWith(ns *os.File, device int, at ebpf.AttachType, code func(counter int) asm.Instructions) (*Counter, error) {
	counter, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	c := &Counter{counter: counter}
	c.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: code(counter.FD())})
	if err != nil {
		return nil, fmt.Errorf("load the counter: %w", err)
	}
	return c, kernel.In(ns, func() (err error) {
		c.attach, err = link.AttachTCX(link.TCXOptions{Interface: device, Program: c.program, Attach: at, Anchor: link.Head()})
		return err
	})
}

// load leaves bytes of the frame at the bottom of the stack's top 16, or goes
// to next.
func load(offset, size int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, offset),
		asm.Mov.Reg(asm.R3, asm.R10),
		asm.Add.Imm(asm.R3, -16),
		asm.Mov.Imm(asm.R4, size),
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "next"),
	}
}

// matchPort goes to next unless the datagram is for a port.
func matchPort(port int32) asm.Instructions {
	return append(load(portAt, 2), asm.LoadMem(asm.R1, asm.R10, -16, asm.Half), asm.HostTo(asm.BE, asm.R1, asm.Half), asm.JNE.Imm(asm.R1, port, "next"))
}

// countAndDrop does: neither UDP nor a match: next; else count and drop.
func countAndDrop(counter int, match asm.Instructions) asm.Instructions {
	code := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	code = append(code, load(protocolAt, 1)...)
	code = append(code, asm.LoadMem(asm.R1, asm.R10, -16, asm.Byte), asm.JNE.Imm(asm.R1, 17, "next"))
	code = append(code, match...)
	return append(code, countIt(counter)...)
}

// countIt does: count and drop; elsewhere next.
func countIt(counter int) asm.Instructions {
	const next, drop = -1, 2
	return asm.Instructions{
		asm.StoreImm(asm.R10, -8, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, counter),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, -8),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "next"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, drop),
		asm.Return(),
		asm.Mov.Imm(asm.R0, next).WithSymbol("next"),
		asm.Return(),
	}
}

// Packets is how many were counted.
func (c *Counter) Packets() (total uint64) {
	var each []uint64
	if err := c.counter.Lookup(uint32(0), &each); err != nil {
		return 0
	}
	for _, n := range each {
		total += n
	}
	return total
}

// Close detaches it.
func (c *Counter) Close() error {
	if c.attach != nil {
		c.attach.Close()
	}
	c.program.Close()
	return c.counter.Close()
}
