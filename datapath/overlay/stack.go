package overlay

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/vnet"
)

// The stack device is a VXLAN device of the kernel's that puts the headers of tunnels on
// and takes them off, where the host's stack is to see their packets. overlay_tx tells it
// to whom each frame goes. What arrives overlay_rx has checked, as far as it can be read,
// and overlay_stacked takes the frames at the device.
const (
	stackName = "slstack"
	stackMark = "sublet overlay: tunnels by the host's stack"
)

// needsStack says whether a tunnel goes by the host's stack.
func (p *Part) needsStack() bool {
	for _, item := range p.items {
		if item.Protocol == vnet.KernelVXLAN {
			return true
		}
	}
	for _, t := range p.tables {
		if t.row().stack {
			return true
		}
	}
	return false
}

// setStackDevice makes the device and tells the programs.
func (p *Part) setStackDevice() error {
	p.stacks = true
	ports := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, bpf.PortLeaseFirst), bpf.PortLeaseFirst+bpf.PortLeaseCount)
	l, err := p.vxlanDevice(stackName, bpf.PortStack, ports)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = errors.New("the kernel knows no VXLAN devices: choose another encapsulation")
	}
	if err != nil {
		return fmt.Errorf("make %s: %w", stackName, err)
	}
	if err := p.bringUp(l, stackMark, "stacked", p.table.objects.OverlayStacked); err != nil {
		return err
	}
	return p.table.objects.StackDevice.Put(uint32(0), uint32(l.Index))
}

// removeStackDevice tells the programs and removes the device, if they are there.
func (p *Part) removeStackDevice() error {
	if err := p.table.objects.StackDevice.Put(uint32(0), uint32(0)); err != nil {
		return err
	}
	if err := p.removeVXLANDevice(stackName, stackMark, "stacked"); err != nil {
		return err
	}
	p.stacks = false
	return nil
}

// stackRight says whether the device is as setStackDevice leaves it.
func (s *survey) stackRight() bool {
	l := s.links[stackName]
	var index uint32
	return l.Index != 0 && l.Up && l.Alias == stackMark && s.table.objects.StackDevice.Lookup(uint32(0), &index) == nil && int(index) == l.Index &&
		s.on("stacked", l, s.table.objects.OverlayStacked)
}
