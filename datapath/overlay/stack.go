package overlay

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
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

const vxlanPortRange = 10 // IFLA_VXLAN_PORT_RANGE

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
	l, err := p.home.LinkByName(stackName)
	if kernel.NotFound(err) {
		l, err = p.makeStackDevice()
	} else if err == nil && l.Kind != "vxlan" {
		err = errors.New("there is another device of that name")
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = errors.New("the kernel knows no VXLAN devices: choose another encapsulation")
	}
	if err != nil {
		return fmt.Errorf("make %s: %w", stackName, err)
	}
	if err := p.attach("stacked", l.Index, p.table.objects.OverlayStacked); err != nil {
		return err
	}
	if !l.Up || l.Alias != stackMark {
		if err := p.home.Do(kernel.UpLink(l.Index).String(unix.IFLA_IFALIAS, stackMark)); err != nil {
			return fmt.Errorf("bring up %s: %w", stackName, err)
		}
	}
	return p.table.objects.StackDevice.Put(uint32(0), uint32(l.Index))
}

func (p *Part) makeStackDevice() (l kernel.Link, err error) {
	ports := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, bpf.PortLeaseFirst), bpf.PortLeaseFirst+bpf.PortLeaseCount)
	m := kernel.NewLink(stackName, "vxlan", func(m *kernel.Message) {
		m.Uint8(vxlanMetadata, 1).Uint8(vxlanLearning, 0).Uint8(vxlanZeroChecksum6, 1).Uint16BE(vxlanPort, bpf.PortStack).Attr(vxlanPortRange, ports)
	})
	if err = p.home.Do(m); err != nil {
		return l, err
	}
	if l, err = p.home.LinkByName(stackName); err == nil {
		err = p.silence(l.Index)
	}
	return l, err
}

// removeStackDevice tells the programs and removes the device, if they are there.
func (p *Part) removeStackDevice() error {
	if err := p.table.objects.StackDevice.Put(uint32(0), uint32(0)); err != nil {
		return err
	}
	if err := p.table.pins.Remove("stacked"); err != nil {
		return err
	}
	if err := p.removeMarked(stackName, stackMark); err != nil {
		return err
	}
	p.stacks = false
	return nil
}

// removeMarked removes a device of ours, if it is there.
func (p *Part) removeMarked(name, mark string) error {
	l, err := p.home.LinkByName(name)
	if kernel.NotFound(err) || err == nil && l.Alias != mark {
		return nil
	}
	if err == nil {
		err = p.home.DeleteLink(l.Index)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// stackRight says whether the device is as setStackDevice leaves it.
func (s *survey) stackRight() bool {
	l := s.links[stackName]
	var index uint32
	return l.Index != 0 && l.Up && l.Alias == stackMark && s.table.objects.StackDevice.Lookup(uint32(0), &index) == nil && int(index) == l.Index &&
		s.on("stacked", l, s.table.objects.OverlayStacked)
}
