package overlay

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// The GSO device is a pair of devices on which no large packet fits: what enters
// its first end comes out of the second in pieces of the size of the wire.
// overlay_tx sends there what the kernel cannot cut behind two tunnels, such
// as packets of a tenant's own tunnel.
const (
	gsoIn, gsoOut = "slcut0", "slcut1"
	gsoMark       = "sublet overlay: cuts packets of tunnels in tunnels"
	gsoMTU        = 65535
	gsoLargest    = 512 // bytes uncut; the kernel takes no less than 321
)

// setGSODevice makes the pair, unless it is there, and tells the programs.
func (p *Part) setGSODevice() error {
	in, out, err := p.findGSODevice()
	if err != nil {
		return err
	}
	if in.Index == 0 || out.Index == 0 {
		if in, out, err = p.makeGSODevice(); err != nil {
			return fmt.Errorf("make the pair %s, %s: %w", gsoIn, gsoOut, err)
		}
	}
	if err := p.attach("again", out.Index, p.table.objects.OverlaySegmented); err != nil {
		return err
	}
	for _, l := range []kernel.Link{out, in} {
		if l.Up && l.GSO == gsoLargest && l.Alias == gsoMark {
			continue
		}
		if err := p.silence(l.Index); err != nil {
			return fmt.Errorf("silence %s: %w", l.Name, err)
		}
		m := kernel.NewMessage(unix.RTM_NEWLINK, 0, kernel.LinkHeader(l.Index, unix.IFF_UP|unix.IFF_NOARP, unix.IFF_UP|unix.IFF_NOARP))
		kernel.SetGSO(m, gsoLargest)
		m.Uint32(unix.IFLA_GSO_MAX_SEGS, 1).String(unix.IFLA_IFALIAS, gsoMark)
		if err := p.home.Do(m); err != nil {
			return fmt.Errorf("bring up %s: %w", l.Name, err)
		}
	}
	return p.table.objects.GsoDevice.Put(uint32(0), uint32(in.Index))
}

// findCutter reads both ends; an index is 0 if one is not there.
func (p *Part) findGSODevice() (in, out kernel.Link, err error) {
	if in, err = p.home.LinkByName(gsoIn); err != nil && !kernel.NotFound(err) {
		return in, out, err
	}
	if out, err = p.home.LinkByName(gsoOut); err != nil && !kernel.NotFound(err) {
		return in, out, err
	}
	if in.Peer != out.Index {
		return kernel.Link{}, kernel.Link{}, nil
	}
	return in, out, nil
}

func (p *Part) makeGSODevice() (in, out kernel.Link, err error) {
	if err = p.removeGSODevice(); err != nil {
		return in, out, err
	}
	m := kernel.NewLink(gsoIn, "veth", func(m *kernel.Message) {
		const vethPeer = 1 // VETH_INFO_PEER
		m.Nest(vethPeer, func() {
			m.Raw(kernel.LinkHeader(0, 0, 0)).String(unix.IFLA_IFNAME, gsoOut).Uint32(unix.IFLA_MTU, gsoMTU)
		})
	}).Uint32(unix.IFLA_MTU, gsoMTU)
	if err = p.home.Do(m); err != nil {
		return in, out, err
	}
	return p.findGSODevice()
}

// silence keeps a device from giving itself an IPv6 address. A kernel without
// IPv6 has nothing to set.
func (p *Part) silence(index int) error {
	const generateMode, generateNone = 8, 1 // IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE
	m := kernel.ChangeLink(index)
	m.Nest(unix.IFLA_AF_SPEC, func() { m.Nest(unix.AF_INET6, func() { m.Uint8(generateMode, generateNone) }) })
	err := p.home.Do(m)
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// removeCutter removes both ends, or what is left of them.
func (p *Part) removeGSODevice() error {
	for _, name := range []string{gsoIn, gsoOut} {
		l, err := p.home.LinkByName(name)
		if kernel.NotFound(err) {
			continue
		}
		if err == nil {
			err = p.home.DeleteLink(l.Index)
		}
		if err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}

// gsoRight says whether the pair is as setGSODevice leaves it.
func (s *survey) gsoRight() bool {
	in, out := s.links[gsoIn], s.links[gsoOut]
	var index uint32
	return in.Index != 0 && in.Peer == out.Index && in.Up && out.Up && in.GSO == gsoLargest &&
		s.table.objects.GsoDevice.Lookup(uint32(0), &index) == nil && int(index) == in.Index &&
		s.on("again", out, s.table.objects.OverlaySegmented)
}
