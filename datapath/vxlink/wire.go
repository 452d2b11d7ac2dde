package vxlink

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"sublet/datapath/kernel"
)

// wire says where the program on one end sends frames: to a device, by a
// class of the physical interface below it (0: none), and which stamp those
// must bear (0: any, they come from a node).
type wire struct {
	target int
	class  uint32
	stamp  uint16
}

// name is what the kernel keeps of the wire, so that it can be read back.
func (w wire) name() string {
	return fmt.Sprintf("sl:%d:%x:%x:%x", w.target, w.class>>16, w.class&0xffff, w.stamp)
}

// priorityOffset is that of __sk_buff.priority (linux/bpf.h). HTB takes a
// packet whose priority is the number of a class into that class.
const priorityOffset = 32

// program does: if stamp is wanted and skb->tc_index != stamp, drop;
// skb->priority = class; return bpf_redirect(target, 0).
func (w wire) program() (*ebpf.Program, error) {
	var check asm.Instructions
	if w.stamp != 0 {
		check = asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, indexOffset, asm.Word),
			asm.Mov.Imm(asm.R0, drop),
			asm.JEq.Imm(asm.R2, int32(w.stamp), "pass"),
			asm.Return(),
		}
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "sublet_wire", Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: append(check,
			asm.Mov.Imm32(asm.R2, int32(w.class)).WithSymbol("pass"),
			asm.StoreMem(asm.R1, priorityOffset, asm.R2, asm.Word),
			asm.Mov.Imm32(asm.R1, int32(w.target)),
			asm.Mov.Imm(asm.R2, 0),
			asm.FnRedirect.Call(),
			asm.Return(),
		),
	})
	if err != nil {
		return nil, fmt.Errorf("load the program %s: %w", w.name(), err)
	}
	return p, nil
}

// attached says whether exactly this program is on a device's ingress, and
// whether anything is.
func (w wire) attached(c *kernel.Conn, index int) (this, any bool, err error) {
	name, count, err := c.Filter(index)
	return count == 1 && name == w.name(), count > 0, err
}

// attach puts the program on a device's ingress unless it is there. Another
// one of ours is replaced without a gap.
func (w wire) attach(c *kernel.Conn, index int) error {
	this, any, err := w.attached(c, index)
	if err != nil || this {
		return err
	}
	if err := w.replace(c, index); err != nil {
		return err
	}
	if !any {
		return nil
	}
	this, _, err = w.attached(c, index)
	if err != nil || this {
		return err
	}
	// A stranger's filter is there as well: the hook is made anew.
	if err := c.DeleteQdisc(index, kernel.TCClsact); err != nil {
		return fmt.Errorf("clear filters: %w", err)
	}
	return w.replace(c, index)
}

func (w wire) replace(c *kernel.Conn, index int) error {
	if err := c.SetClsact(index); err != nil {
		return fmt.Errorf("make the filter hook: %w", err)
	}
	program, err := w.program()
	if err != nil {
		return err
	}
	defer program.Close()
	if err := c.Do(kernel.SetFilter(index, program.FD(), w.name())); err != nil {
		return fmt.Errorf("attach the program %s: %w", w.name(), err)
	}
	return nil
}
