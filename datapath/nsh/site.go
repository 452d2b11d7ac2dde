package nsh

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// site is where a plane is: its fabric, the host, and the devices in both.
type site struct {
	host   *kernel.Host
	fabric *os.File
	inside *kernel.Conn // in the fabric
	home   *kernel.Conn
	index  map[string]uint32 // of devices in the fabric
	below  kernel.Link       // the interface
	inner  kernel.Link       // the pair's end at home
	chain  int               // and in the fabric; 0: there is none
	queue  kernel.Link       // of the fabric, where packets wait for rates
}

func (p *Part) open(plane Plane) (*site, error) {
	s := &site{host: p.host, index: make(map[string]uint32)}
	var err error
	if s.fabric, err = p.host.Open(plane.Fabric); err != nil {
		return nil, fmt.Errorf("open the lease's fabric: %w", err)
	}
	if s.inside, err = kernel.DialIn(s.fabric); err == nil {
		s.home, err = p.host.Dial("")
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *site) close() {
	if s.home != nil {
		s.home.Close()
	}
	if s.inside != nil {
		s.inside.Close()
	}
	s.fabric.Close()
}

// devices looks up all devices that a plane names.
func (s *site) devices(plane Plane) error {
	links, err := s.inside.Links()
	if err != nil {
		return err
	}
	there := make(map[string]int, len(links))
	for _, l := range links {
		there[l.Name] = l.Index
	}
	for _, name := range plane.devices() {
		index, ok := there[name]
		if !ok {
			return fmt.Errorf("there is no device %s in the fabric", name)
		}
		s.index[name] = uint32(index)
	}
	if plane.Interface == "" {
		return nil
	}
	if s.below, err = s.home.LinkByName(plane.Interface); err != nil {
		return fmt.Errorf("interface %s: %w", plane.Interface, err)
	}
	return nil
}

// devices of the fabric that a plane names.
func (p Plane) devices() []string {
	var names []string
	for _, c := range p.Classifiers {
		names = append(names, c.Port)
	}
	for _, f := range p.Functions {
		for _, name := range []string{f.In, f.Out, f.To} {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	for _, h := range p.Hops {
		if h.Egress != nil {
			names = append(names, h.Egress.Port)
		}
	}
	return names
}

// chainDevice is the pair's end in the fabric.
const chainDevice = "chain"

// homeDevice is its end at home: a digest of the fabric's name.
func homeDevice(fabric string) string {
	sum := sha256.Sum256([]byte(fabric))
	return "sc" + hex.EncodeToString(sum[:6])
}

// vethPeer is VETH_INFO_PEER of linux/veth.h.
const vethPeer = 1

// pairMTU is more than any packet needs: what fits is the remote's to say.
const pairMTU = 65535

// pair makes the devices by which packets get out of the fabric and into it, if
// other hosts are to be reached; with what goes through them attached by apply. A
// pair that is there stays.
func (s *site) pair(plane Plane) error {
	if plane.Interface == "" {
		return nil
	}
	name := homeDevice(plane.Fabric)
	l, err := s.home.LinkByName(name)
	if err == nil {
		if in, err := s.inside.LinkByName(chainDevice); err == nil && in.Index == l.Peer {
			s.inner, s.chain = l, in.Index
			return s.up()
		}
		err = s.home.DeleteLink(l.Index)
	}
	if err != nil && !kernel.NotFound(err) {
		return err
	}
	m := kernel.NewLink(name, "veth", func(m *kernel.Message) {
		m.Nest(vethPeer, func() {
			m.Raw(kernel.LinkHeader(0, 0, 0)).String(unix.IFLA_IFNAME, chainDevice)
			m.Uint32(unix.IFLA_MTU, pairMTU).Uint32(unix.IFLA_NET_NS_FD, uint32(s.fabric.Fd()))
		})
	}).Uint32(unix.IFLA_MTU, pairMTU)
	if err := s.home.Do(m); err != nil {
		return fmt.Errorf("make its devices: %w", err)
	}
	if s.inner, err = s.home.LinkByName(name); err != nil {
		return err
	}
	s.chain = s.inner.Peer
	return s.up()
}

// up brings both ends up.
func (s *site) up() error {
	return errors.Join(bringUp(s.home, s.inner.Index), bringUp(s.inside, s.chain))
}

// bringUp brings a device up, which asks for no neighbours and answers none.
func bringUp(c *kernel.Conn, index int) error {
	if err := c.Quiet(index); err != nil {
		return err
	}
	const flags = unix.IFF_UP | unix.IFF_NOARP
	return c.Do(kernel.NewMessage(unix.RTM_NEWLINK, 0, kernel.LinkHeader(index, flags, flags)))
}

// leastGSO is less than any large segment has: those of TCP's least size are 536 bytes
// each (RFC 9293, section 3.7.1). The kernel takes no less than some 320.
const leastGSO = 512

// cut has the kernel cut large segments on their way to functions that know NSH: few
// kernels could do that behind them, where the type of frames is that of NSH.
func (s *site) cut(plane Plane) error {
	for _, f := range plane.Functions {
		if f.Kind != Aware {
			continue
		}
		for _, device := range []string{f.In, f.Out} {
			m := kernel.NewMessage(unix.RTM_NEWLINK, 0, kernel.LinkHeader(int(s.index[device]), 0, 0))
			kernel.SetGSO(m, leastGSO)
			if err := s.inside.Do(m); err != nil {
				return fmt.Errorf("have segments cut for function %s: %w", f.Name, err)
			}
		}
	}
	return nil
}

func (p *Part) deletePair(fabric string) error {
	home, err := p.host.Dial("")
	if err != nil {
		return err
	}
	defer home.Close()
	l, err := home.LinkByName(homeDevice(fabric))
	if err == nil {
		err = home.DeleteLink(l.Index)
	}
	if err != nil && !kernel.NotFound(err) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
