package overlay

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// The opener is a VXLAN device of the kernel's that takes the headers off
// datagrams sent in large pieces (UDP_SEGMENT), on hosts whose wires bring them
// uncut. overlay_rx has checked them before and sends them to its port, by the
// host's stack; overlay_opened takes them at the device. Only the kernel's own
// device makes of such a packet one that a receiver can cut.
const (
	openerName = "slopen"
	openerMark = "sublet overlay: takes headers off large packets"
	openerPort = 14789
)

// Attributes of VXLAN devices (linux/if_link.h).
const (
	vxlanLearning, vxlanPort, vxlanZeroChecksum6, vxlanMetadata = 7, 15, 20, 25
)

// setOpener makes the device, where it is of use and the kernel knows it, and
// tells the programs.
func (p *Part) setOpener() error {
	if !p.Uncut {
		return nil
	}
	l, err := p.home.LinkByName(openerName)
	if kernel.NotFound(err) {
		l, err = p.makeOpener()
	} else if err == nil && l.Kind != "vxlan" {
		err = errors.New("there is another device of that name")
	}
	if p.opens = !errors.Is(err, unix.EOPNOTSUPP); !p.opens {
		return nil // datagrams are cut where they are sent
	}
	if err != nil {
		return fmt.Errorf("make %s: %w", openerName, err)
	}
	if err := p.attach("opened", l.Index, p.table.objects.OverlayOpened); err != nil {
		return err
	}
	if !l.Up || l.Alias != openerMark {
		if err := p.home.Do(kernel.UpLink(l.Index).String(unix.IFLA_IFALIAS, openerMark)); err != nil {
			return fmt.Errorf("bring up %s: %w", openerName, err)
		}
	}
	return p.table.objects.Opener.Put(uint32(0), uint32(portInMemory()))
}

// findOpener notes whether an earlier agent made the device. Where it is of no
// use any more it goes.
func (p *Part) findOpener() error {
	if !p.Uncut {
		p.opens = false
		return p.removeOpener()
	}
	l, err := p.home.LinkByName(openerName)
	p.opens = err == nil && l.Alias == openerMark
	return nil // a device that cannot be read is made
}

func portInMemory() uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, openerPort))
}

func (p *Part) makeOpener() (l kernel.Link, err error) {
	m := kernel.NewLink(openerName, "vxlan", func(m *kernel.Message) {
		m.Uint8(vxlanMetadata, 1).Uint8(vxlanLearning, 0).Uint8(vxlanZeroChecksum6, 1).Uint16BE(vxlanPort, openerPort)
	})
	if err = p.home.Do(m); err != nil {
		return l, err
	}
	if l, err = p.home.LinkByName(openerName); err == nil {
		err = p.silence(l.Index)
	}
	return l, err
}

// removeOpener tells the programs and removes the device, if they are there.
func (p *Part) removeOpener() error {
	if err := p.table.objects.Opener.Put(uint32(0), uint32(0)); err != nil {
		return err
	}
	if err := p.table.pins.Remove("opened"); err != nil {
		return err
	}
	l, err := p.home.LinkByName(openerName)
	if kernel.NotFound(err) || err == nil && l.Alias != openerMark {
		return nil
	}
	if err == nil {
		err = p.home.DeleteLink(l.Index)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", openerName, err)
	}
	return nil
}

// openerRight says whether the device is as setOpener leaves it.
func (s *survey) openerRight() bool {
	if !s.opens {
		return true
	}
	l := s.links[openerName]
	var port uint32
	return l.Up && l.Alias == openerMark && s.table.objects.Opener.Lookup(uint32(0), &port) == nil && port == uint32(portInMemory()) &&
		s.on("opened", l, s.table.objects.OverlayOpened)
}
