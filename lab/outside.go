package lab

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// The outside of a lab: a namespace that stands for the Internet, to which the
// interfaces of ways out lead. It forwards between them.
//
//	NAME-h2 [eth2] ==veth== [h2-eth2 192.0.2.1] NAME.internet [lo 198.51.100.1]

// OutsideAddress is what answers in the outside of every lab (TEST-NET-2 of RFC
// 5737).
var OutsideAddress = netip.MustParseAddr("198.51.100.1")

// outsidePort is an interface of a host that leads out.
type outsidePort struct {
	host, device string
	there        string         // the device's name outside
	addresses    []netip.Prefix // of that one: next hops of ways out
	joins        []netip.Addr   // of the host, at which machines join
}

// outsidePorts lists the interfaces of a substrate that lead out.
func outsidePorts(sub vnet.Substrate) (ports []outsidePort) {
	taken := map[string]bool{}
	port := func(host vnet.HostID, device string) *outsidePort {
		i := slices.IndexFunc(ports, func(p outsidePort) bool { return p.host == string(host) && p.device == device })
		if i < 0 {
			i = len(ports)
			there := shortName(string(host)+"-"+device, string(host)+"/"+device, taken)
			ports = append(ports, outsidePort{host: string(host), device: device, there: there})
		}
		return &ports[i]
	}
	for _, n := range sub.NAT {
		p := port(n.Host, n.Interface)
		p.addresses = append(p.addresses, netip.PrefixFrom(n.Via, plan.Subnet([]netip.Addr{n.Via, n.Pool.First, n.Pool.Last}, nil).Bits()))
	}
	for _, x := range sub.Exits {
		port(x.Host, x.Interface)
	}
	for _, d := range sub.Devices {
		port(d.Host, d.Interface)
	}
	for _, j := range sub.Joins {
		p := port(j.Host, joinDevice)
		if !slices.Contains(p.joins, j.Address) {
			p.joins = append(p.joins, j.Address)
		}
	}
	return ports
}

// joinDevice is the interface of a host at whose addresses machines join.
const joinDevice = "join0"

// OutsideNamespace is the file of a lab's outside.
func OutsideNamespace(name string) string { return filepath.Join(netnsDir, outsideName(name)) }

func outsideName(lab string) string { return lab + ".internet" }

// makeOutside joins the interfaces of ways out to the outside, unless there are none.
func (l *layout) makeOutside() error {
	if len(l.outside) == 0 {
		return nil
	}
	ns, c, err := openNamespace(outsideName(l.name))
	if err != nil {
		return err
	}
	defer ns.Close()
	defer c.Close()
	const loopback = 1
	if err := c.AddAddress(kernel.Address{Index: loopback, Local: OutsideAddress, Reach: netip.PrefixFrom(OutsideAddress, 32)}); err != nil {
		return err
	}
	for _, p := range l.outside {
		if err := l.makeOutsidePort(c, p); err != nil {
			return fmt.Errorf("make interface %s of host %s: %w", p.device, p.host, err)
		}
	}
	return nil
}

func (l *layout) makeOutsidePort(c *kernel.Conn, p outsidePort) error {
	ns, host, err := openNamespace(l.namespace(p.host))
	if err != nil {
		return err
	}
	defer ns.Close()
	defer host.Close()
	err = c.Do(kernel.NewLink(p.there, "veth", func(m *kernel.Message) {
		const vethInfoPeer = 1 // VETH_INFO_PEER, linux/veth.h
		m.Nest(vethInfoPeer, func() {
			m.Raw(kernel.LinkHeader(0, 0, 0)).String(unix.IFLA_IFNAME, p.device).Uint32(unix.IFLA_NET_NS_FD, uint32(ns.Fd()))
		})
	}))
	if err != nil {
		return err
	}
	inside, err := host.LinkByName(p.device)
	if err != nil {
		return err
	}
	outside, err := c.LinkByName(p.there)
	if err != nil {
		return err
	}
	for _, a := range p.addresses {
		if err := c.AddAddress(kernel.Address{Index: outside.Index, Local: a.Addr(), Reach: a.Masked()}); err != nil {
			return err
		}
	}
	if err := host.Do(kernel.UpLink(inside.Index)); err != nil {
		return err
	}
	if err := c.Do(kernel.UpLink(outside.Index)); err != nil {
		return err
	}
	return reachJoins(c, host, p.joins, outside.Index, inside.Index)
}

// reachJoins gives a host its addresses at which machines join, and both sides
// their way there.
func reachJoins(c, host *kernel.Conn, joins []netip.Addr, outside, inside int) error {
	single := func(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
	for _, a := range joins {
		if err := host.AddAddress(kernel.Address{Index: inside, Local: a, Reach: single(a)}); err != nil {
			return err
		}
		if err := c.Do(kernel.AddRoute(kernel.Route{Prefix: single(a), Index: outside}, unix.RTPROT_STATIC)); err != nil {
			return err
		}
	}
	if len(joins) == 0 {
		return nil
	}
	return host.Do(kernel.AddRoute(kernel.Route{Prefix: single(OutsideAddress), Index: inside}, unix.RTPROT_STATIC))
}
