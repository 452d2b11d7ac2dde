package overlay

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// Attributes of VXLAN devices (linux/if_link.h).
const (
	vxlanLearning, vxlanPortRange, vxlanPort, vxlanZeroChecksum6, vxlanMetadata = 7, 10, 15, 20, 25
)

// vxlanDevice is a VXLAN device of the kernel's that is told with each frame whom it is
// from and to, made unless it is there. sources is its range of source ports as the kernel
// has it (struct ifla_vxlan_port_range); nil: the kernel's own.
func (p *Part) vxlanDevice(name string, port uint16, sources []byte) (kernel.Link, error) {
	l, err := p.home.LinkByName(name)
	switch {
	case kernel.NotFound(err):
		return p.makeVXLANDevice(name, port, sources)
	case err == nil && l.Kind != "vxlan":
		err = errors.New("there is another device of that name")
	}
	return l, err
}

func (p *Part) makeVXLANDevice(name string, port uint16, sources []byte) (l kernel.Link, err error) {
	m := kernel.NewLink(name, "vxlan", func(m *kernel.Message) {
		m.Uint8(vxlanMetadata, 1).Uint8(vxlanLearning, 0).Uint8(vxlanZeroChecksum6, 1).Uint16BE(vxlanPort, port)
		if sources != nil {
			m.Attr(vxlanPortRange, sources)
		}
	})
	if err = p.home.Do(m); err != nil {
		return l, err
	}
	if l, err = p.home.LinkByName(name); err == nil {
		err = p.silence(l.Index)
	}
	return l, err
}

// bringUp gives a device its program, and its mark as that is all.
func (p *Part) bringUp(l kernel.Link, mark, pin string, program *ebpf.Program) error {
	if err := p.attach(pin, l.Index, program); err != nil {
		return err
	}
	if l.Up && l.Alias == mark {
		return nil
	}
	if err := p.home.Do(kernel.UpLink(l.Index).String(unix.IFLA_IFALIAS, mark)); err != nil {
		return fmt.Errorf("bring up %s: %w", l.Name, err)
	}
	return nil
}

// removeVXLANDevice removes a device of ours and its program, if they are there.
func (p *Part) removeVXLANDevice(name, mark, pin string) error {
	if err := p.table.pins.Remove(pin); err != nil {
		return err
	}
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
