package overlay

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
)

// The decap device is a VXLAN device of the kernel's that takes the headers off
// datagrams sent in large pieces (UDP_SEGMENT), on hosts whose wires bring them
// uncut. overlay_rx has checked them before and sends them to its port, by the
// host's stack; overlay_decapped takes them at the device. Only the kernel's own
// device makes of such a packet one that a receiver can cut.
const (
	decapName = "slopen"
	decapMark = "sublet overlay: takes headers off large packets"
)

// setDecapDevice makes the device, where it is of use and the kernel knows it, and
// tells the programs.
func (p *Part) setDecapDevice() error {
	if !p.WiresCarryGSO {
		return nil
	}
	l, err := p.vxlanDevice(decapName, bpf.PortDecap, nil)
	if p.decaps = !errors.Is(err, unix.EOPNOTSUPP); !p.decaps {
		return nil // datagrams are cut where they are sent
	}
	if err != nil {
		return fmt.Errorf("make %s: %w", decapName, err)
	}
	if err := p.bringUp(l, decapMark, "opened", p.table.objects.OverlayDecapped); err != nil {
		return err
	}
	return p.table.objects.DecapPort.Put(uint32(0), uint32(portInMemory()))
}

// findDecapDevice notes whether an earlier agent made the device. Where it is of no
// use any more it goes.
func (p *Part) findDecapDevice() error {
	if !p.WiresCarryGSO {
		p.decaps = false
		return p.removeDecapDevice()
	}
	l, err := p.home.LinkByName(decapName)
	p.decaps = err == nil && l.Alias == decapMark
	return nil // a device that cannot be read is made
}

func portInMemory() uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, bpf.PortDecap))
}

// removeOpener tells the programs and removes the device, if they are there.
func (p *Part) removeDecapDevice() error {
	if err := p.table.objects.DecapPort.Put(uint32(0), uint32(0)); err != nil {
		return err
	}
	return p.removeVXLANDevice(decapName, decapMark, "opened")
}

// decapRight says whether the device is as setDecapDevice leaves it.
func (s *survey) decapRight() bool {
	if !s.decaps {
		return true
	}
	l := s.links[decapName]
	var port uint32
	return l.Up && l.Alias == decapMark && s.table.objects.DecapPort.Lookup(uint32(0), &port) == nil && port == uint32(portInMemory()) &&
		s.on("opened", l, s.table.objects.OverlayDecapped)
}
