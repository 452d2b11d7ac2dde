package bpf

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// The packet by which Undercounts tells: TCP in three segments, behind the outer
// headers of a tunnel.
const (
	trialHeader, trialOuter, trialSegment, trialSegments = 54, 50, 1000, 3

	trialLength = trialOuter + trialHeader + trialSegment*trialSegments
	// what a queue counts that sees all headers
	trialRight = trialLength + (trialSegments-1)*(trialOuter+trialHeader)
	// what one counts that sees those before the outer UDP header only, and takes
	// the others for data of one more segment
	trialShort = trialLength + trialSegments*34
)

// Undercounts says whether this kernel's queues leave headers out when they
// count a large packet of TCP behind outer headers, as Linux before 6.17 does
// (vxlink.bpf.c has how). It tries, in a namespace of its own, and needs root.
func Undercounts() (bool, error) {
	var counted uint64
	ns, err := kernel.NewNamespace(func() (err error) {
		counted, err = countedOf()
		return err
	})
	if err != nil {
		return false, fmt.Errorf("try how queues count large packets: %w", err)
	}
	if err := ns.Close(); err != nil {
		return false, err
	}
	if counted != trialRight && counted != trialShort {
		return false, fmt.Errorf("try how queues count large packets: %d bytes are neither %d nor %d", counted, trialRight, trialShort)
	}
	return counted == trialShort, nil
}

// countedOf sends the packet by a program that puts the outer headers in front,
// and returns what the queue behind it counts.
func countedOf() (uint64, error) {
	c, err := kernel.Dial()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := kernel.Sysctl("ipv6/conf/default/disable_ipv6", "1"); err != nil { // else devices greet their neighbours
		return 0, err
	}
	if err := c.Do(kernel.NewLink("from", "veth", nil)); err != nil {
		return 0, err
	}
	from, err := c.LinkByName("from")
	if err != nil {
		return 0, err
	}
	to := from.Peer
	if err := c.Do(kernel.UpLink(from.Index), kernel.UpLink(to), kernel.SetFIFO(to, kernel.Handle(1, 0), kernel.TCRoot, 1<<20)); err != nil {
		return 0, err
	}
	hook, err := attachTrial(from.Index, to)
	if err != nil {
		return 0, err
	}
	defer hook.Close()
	before, err := c.RootQdisc(to)
	if err != nil {
		return 0, err
	}
	if err := sendTrial(from.Index); err != nil {
		return 0, err
	}
	for end := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		now, err := c.RootQdisc(to)
		if counted := now.Bytes - before.Bytes; err != nil || counted > 0 || time.Now().After(end) {
			return counted, err
		}
	}
}

// attachTrial puts a program on what a device sends: outer headers of zeros,
// then out by another device.
func attachTrial(from, to int) (link.Link, error) {
	const (
		atMAC = 1                                         // BPF_ADJ_ROOM_MAC
		flags = 1<<0 | 1<<1 | 1<<4 | 1<<6 | int64(14)<<56 // fixed GSO, IPv4, UDP, Ethernet of 14 bytes
		other = "other"
	)
	zeros := asm.Instructions{asm.Mov.Imm(asm.R0, 0)}
	for at := int16(-56); at < 0; at += 8 {
		zeros = append(zeros, asm.StoreMem(asm.RFP, at, asm.R0, asm.DWord))
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "trial", Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: slices.Concat(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R2, asm.R1, gsoSizeOffset, asm.Word),
			asm.JEq.Imm(asm.R2, 0, other),
			asm.Mov.Imm(asm.R2, trialOuter), asm.Mov.Imm(asm.R3, atMAC), asm.LoadImm(asm.R4, flags, asm.DWord),
			asm.FnSkbAdjustRoom.Call(),
			asm.JNE.Imm(asm.R0, 0, other),
		}, zeros, asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, 14), asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -56),
			asm.Mov.Imm(asm.R4, trialOuter), asm.Mov.Imm(asm.R5, 0),
			asm.FnSkbStoreBytes.Call(),
			asm.Mov.Imm(asm.R1, int32(to)), asm.Mov.Imm(asm.R2, 0),
			asm.FnRedirect.Call(),
			asm.Return(),
			asm.Mov.Imm(asm.R0, drop).WithSymbol(other),
			asm.Return(),
		})})
	if err != nil {
		return nil, err
	}
	defer program.Close() // the link holds it
	return link.AttachTCX(link.TCXOptions{Interface: from, Program: program, Attach: ebpf.AttachTCXEgress})
}

const (
	gsoSizeOffset = 176 // of gso_size in struct __sk_buff
	drop          = 2   // TCX_DROP
)

// sendTrial sends the packet by a device.
func sendTrial(device int) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return err
	}
	const needsSum, tcp4, ip, checkAt = 1, 1, 34, 16 // linux/virtio_net.h
	b := []byte{needsSum, tcp4}
	for _, v := range []uint16{trialHeader, trialSegment, ip, checkAt} {
		b = binary.NativeEndian.AppendUint16(b, v)
	}
	b = append(b, slices.Repeat([]byte{2}, 12)...) // addresses of the frame
	b = append(b, 8, 0, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, trialHeader-14+trialSegment*trialSegments)
	b = append(b, 0, 0, 0x40, 0, 64, unix.IPPROTO_TCP, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2)
	b = append(b, 0, 9, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0, 0, 0, 0, 0, 0)
	b = append(b, make([]byte, trialSegment*trialSegments)...)
	return unix.Sendto(fd, b, 0, &unix.SockaddrLinklayer{Protocol: 8, Ifindex: device}) // ETH_P_IP in network order
}
