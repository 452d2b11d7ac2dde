package kernel

import (
	"encoding/binary"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Attributes of cls_bpf (linux/pkt_cls.h).
const (
	bpfClass, bpfCount, bpfProgram  = 3, 4, 5
	bpfFD, bpfName, bpfFlags, bpfID = 6, 7, 8, 11
	bpfDirectAction                 = 1
)

// everyProtocol is ETH_P_ALL in network order.
const everyProtocol = 0x0300

// SetFilter begins a request that attaches a program to a device's ingress
// with priority 1, or replaces the one there without a gap. name is kept by
// the kernel.
func SetFilter(index, program int, name string) *Message {
	m := NewMessage(unix.RTM_NEWTFILTER, unix.NLM_F_CREATE, TCHeader(index, 1, TCIngress, 1<<16|everyProtocol))
	m.String(unix.TCA_KIND, "bpf")
	return m.Nest(unix.TCA_OPTIONS, func() {
		m.Uint32(bpfFD, uint32(program)).String(bpfName, name).Uint32(bpfFlags, bpfDirectAction)
	})
}

// Filter is the name of the first program attached to a device's ingress, and
// how many filters there are.
func (c *Conn) Filter(index int) (name string, count int, err error) {
	return c.filters(TCHeader(index, 0, TCIngress, 0))
}

// FilterProgram is the kernel's number of the first program attached to a
// device's ingress by a filter, and how many filters there are.
func (c *Conn) FilterProgram(index int) (program uint32, count int, err error) {
	err = c.eachFilter(TCHeader(index, 0, TCIngress, 0), func(options []byte) {
		if count++; count == 1 {
			program = uint32Of(attr(options, bpfID))
		}
	})
	return program, count, err
}

func (c *Conn) filters(header []byte) (name string, count int, err error) {
	err = c.eachFilter(header, func(options []byte) {
		if count++; count == 1 {
			name = stringOf(attr(options, bpfName))
		}
	})
	return name, count, err
}

func (c *Conn) eachFilter(header []byte, f func(options []byte)) error {
	answers, err := c.Dump(NewMessage(unix.RTM_GETTFILTER, 0, header))
	for _, b := range answers {
		if len(b) >= 20 && binary.NativeEndian.Uint32(b[8:]) != 0 { // else the chain's own line, without a handle
			f(attr(b[20:], unix.TCA_OPTIONS))
		}
	}
	return err
}

// Attributes of cls_u32, and the handle of the first key of its first table.
const (
	u32Class, u32Selector = 1, 5
	u32Handle             = 0x80000001
)

// arpInfo is priority 1, address resolution (ETH_P_ARP in network order).
const arpInfo = 1<<16 | 0x0608

// SetARPFilter sends a device's address resolution to a class of its root
// qdisc 1:. It fails with EEXIST where that is so already.
func SetARPFilter(index int, class uint32) *Message {
	m := NewMessage(unix.RTM_NEWTFILTER, unix.NLM_F_CREATE|unix.NLM_F_EXCL, TCHeader(index, u32Handle, Handle(1, 0), arpInfo))
	m.String(unix.TCA_KIND, "u32")
	return m.Nest(unix.TCA_OPTIONS, func() {
		// struct tc_u32_sel with one key: no bit of the packet has to match.
		selector := make([]byte, 16+16)
		selector[0], selector[2] = 1, 1 // TC_U32_TERMINAL, nkeys
		m.Uint32(u32Class, class).Attr(u32Selector, selector)
	})
}

// HasARPFilter says whether SetARPFilter was done.
func (c *Conn) HasARPFilter(index int) (bool, error) {
	answers, err := c.Dump(NewMessage(unix.RTM_GETTFILTER, 0, TCHeader(index, 0, Handle(1, 0), arpInfo)))
	for _, b := range answers {
		if len(b) >= 20 && binary.NativeEndian.Uint32(b[8:]) == u32Handle {
			return true, err
		}
	}
	return false, err
}

// SetMarkFilter sends packets whose mark has a bit to a class of a qdisc, by a
// classic program: kernels may lack the classifier of marks.
func SetMarkFilter(index int, qdisc, class, bit uint32) (*Message, error) {
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtMark},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: bit, SkipTrue: 1},
		bpf.RetConstant{Val: 0xffffffff}, // the class that is stated
		bpf.RetConstant{},
	})
	if err != nil {
		return nil, err
	}
	var code []byte
	for _, i := range program {
		code = binary.NativeEndian.AppendUint16(code, i.Op)
		code = binary.NativeEndian.AppendUint32(append(code, i.Jt, i.Jf), i.K)
	}
	m := NewMessage(unix.RTM_NEWTFILTER, unix.NLM_F_CREATE, TCHeader(index, 1, qdisc, 1<<16|everyProtocol))
	m.String(unix.TCA_KIND, "bpf")
	return m.Nest(unix.TCA_OPTIONS, func() {
		m.Uint32(bpfClass, class).Attr(bpfCount, binary.NativeEndian.AppendUint16(nil, uint16(len(program)))).Attr(bpfProgram, code)
	}), nil
}

// HasMarkFilter says whether SetMarkFilter was done, and nothing else.
func (c *Conn) HasMarkFilter(index int, qdisc, class uint32) (is bool, err error) {
	count := 0
	err = c.eachFilter(TCHeader(index, 0, qdisc, 0), func(options []byte) {
		b := attr(options, bpfClass)
		count++
		is = count == 1 && len(b) == 4 && uint32Of(b) == class
	})
	return is, err
}
