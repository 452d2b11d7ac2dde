package inband

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"
)

const wholeFrame = 1 << 18

// Program is the Filter as one of a packet socket, which then has control and
// nothing else, however many frames of data come.
func (f *Filter) Program() ([]bpf.RawInstruction, error) {
	return bpf.Assemble(f.instructions())
}

// instructions take one kind of frame after the other. A frame that is too short for
// what is read of it ends there, as no control.
func (f *Filter) instructions() []bpf.Instruction {
	list := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtVLANTagPresent},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
		bpf.RetConstant{},
	}
	list = append(list, ofType(typeARP, f.arpProgram())...)
	list = append(list, ofType(typeIPv4, f.ipv4Program())...)
	list = append(list, ofType(typeIPv6, f.ipv6Program())...)
	return append(list, bpf.RetConstant{})
}

// ofType is instructions for frames of a type; they end with a return.
func ofType(kind uint32, body []bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 12, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: kind, SkipTrue: 1},
		bpf.Jump{Skip: uint32(len(body))},
	}, body...)
}

// longEnough ends frames that have no byte at a place; by is beside register X.
func longEnough(last uint32, byX bool) bpf.Instruction {
	if byX {
		return bpf.LoadIndirect{Off: last, Size: 1}
	}
	return bpf.LoadAbsolute{Off: last, Size: 1}
}

func (f *Filter) arpProgram() []bpf.Instruction {
	list := []bpf.Instruction{longEnough(etherLen+arpLen-1, false)}
	for _, a := range f.asked {
		if a.Is4() {
			list = append(list, accept(equal(etherLen+14, a))...)
			list = append(list, accept(equal(etherLen+24, a))...)
		}
	}
	return append(list, bpf.RetConstant{})
}

func (f *Filter) ipv4Program() []bpf.Instruction {
	list := []bpf.Instruction{
		longEnough(etherLen+ipv4Len-1, false),
		bpf.LoadAbsolute{Off: etherLen + 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: tcp, SkipTrue: 1},
		bpf.RetConstant{},
		bpf.LoadAbsolute{Off: etherLen + 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: 0x1fff, SkipTrue: 1},
		bpf.RetConstant{},
		bpf.LoadAbsolute{Off: etherLen, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 15},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: ipv4Len / 4, SkipTrue: 1},
		bpf.RetConstant{},
		bpf.LoadMemShift{Off: etherLen},
		longEnough(etherLen+tcpLen-1, true),
	}
	for _, c := range f.controllers {
		if c.Addr().Is4() {
			list = append(list, accept(append(equal(etherLen+12, c.Addr()), bpf.LoadIndirect{Off: etherLen, Size: 2}, want(uint32(c.Port()))))...)
			list = append(list, accept(append(equal(etherLen+16, c.Addr()), bpf.LoadIndirect{Off: etherLen + 2, Size: 2}, want(uint32(c.Port()))))...)
		}
	}
	return append(list, bpf.RetConstant{})
}

func (f *Filter) ipv6Program() []bpf.Instruction {
	segment, discovery := f.tcp6Program(), f.discoveryProgram()
	list := []bpf.Instruction{
		longEnough(etherLen+ipv6Len-1, false),
		bpf.LoadAbsolute{Off: etherLen + 6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: tcp, SkipTrue: 1},
		bpf.Jump{Skip: uint32(len(segment))},
	}
	list = append(list, segment...)
	return append(list, discovery...)
}

func (f *Filter) tcp6Program() []bpf.Instruction {
	const at = etherLen + ipv6Len
	list := []bpf.Instruction{longEnough(at+tcpLen-1, false)}
	for _, c := range f.controllers {
		if c.Addr().Is6() {
			list = append(list, accept(append(equal(etherLen+8, c.Addr()), bpf.LoadAbsolute{Off: at, Size: 2}, want(uint32(c.Port()))))...)
			list = append(list, accept(append(equal(etherLen+24, c.Addr()), bpf.LoadAbsolute{Off: at + 2, Size: 2}, want(uint32(c.Port()))))...)
		}
	}
	return append(list, bpf.RetConstant{})
}

func (f *Filter) discoveryProgram() []bpf.Instruction {
	const at = etherLen + ipv6Len
	list := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: icmp6, SkipTrue: 1},
		bpf.RetConstant{},
		longEnough(at+ndLen-1, false),
		bpf.LoadAbsolute{Off: at, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: solicit, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: advertise, SkipTrue: 1},
		bpf.RetConstant{},
	}
	for _, a := range f.asked {
		if a.Is6() {
			for _, off := range []uint32{etherLen + 8, etherLen + 24, at + 8} {
				list = append(list, accept(equal(off, a))...)
			}
		}
	}
	return append(list, bpf.RetConstant{})
}

// want is a condition for accept.
func want(v uint32) bpf.JumpIf { return bpf.JumpIf{Cond: bpf.JumpEqual, Val: v} }

// equal are conditions for accept: an address is at a place.
func equal(off uint32, a netip.Addr) (list []bpf.Instruction) {
	for b := a.AsSlice(); len(b) > 0; b, off = b[4:], off+4 {
		list = append(list, bpf.LoadAbsolute{Off: off, Size: 4}, want(binary.BigEndian.Uint32(b)))
	}
	return list
}

// accept takes the frame if all conditions hold, and goes on behind if not.
func accept(list []bpf.Instruction) []bpf.Instruction {
	list = append(list, bpf.RetConstant{Val: wholeFrame})
	for i := range list {
		if j, is := list[i].(bpf.JumpIf); is {
			j.SkipFalse = uint8(len(list) - 1 - i)
			list[i] = j
		}
	}
	return list
}
