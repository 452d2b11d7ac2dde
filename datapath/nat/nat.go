// Package nat builds ways out: a device on an interface of the host in the
// namespace of a router, with an address outside, and rules of nftables.
//
//	node ==link== router's namespace --[rules]-- wan0 ==macvlan== interface of the host
//
// The namespace is the provider's, no tenant runs anything there. The device is a
// macvlan in private mode: frames reach neither the interface's own addresses nor
// the devices of other leases on it, and no other lease sees them. What routers
// behind the interface might bring back to the host, the rules refuse. A file in
// $RUN/nat/HOST marks each gateway from before it is made until it is gone.
package nat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// Part does gateways. Do may be called concurrently for different items;
// Observe waits until no Do is running.
type Part struct {
	host *kernel.Host
	busy sync.RWMutex // Do: read, Observe: write
}

// New makes the part for one host.
func New(host *kernel.Host) *Part { return &Part{host: host} }

// Kinds is gateway.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindGateway} }

// Do makes one change.
func (p *Part) Do(_ context.Context, step plan.Step) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	g, ok := step.Item.(plan.Gateway)
	if !ok {
		return fmt.Errorf("nat does not do %s", step.Item.Kind())
	}
	do := p.set
	if step.Op == plan.Delete {
		do = p.delete
	}
	if err := do(g); err != nil {
		return fmt.Errorf("%s gateway %s: %w", step.Op, g.Key(), err)
	}
	return nil
}

func (p *Part) mark(key string) string { return filepath.Join(p.host.Dir("nat"), key) }

// set makes the rules first: nothing passes the device without them.
func (p *Part) set(g plan.Gateway) error {
	if err := kernel.MkdirAll(p.host.Dir("nat"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(p.mark(g.Key()), nil, 0o600); err != nil {
		return err
	}
	own, err := p.ownAddresses()
	if err != nil {
		return err
	}
	ns, err := p.host.Open(g.Key())
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := writeRules(ns, rulesOf(g, own)); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	c, err := kernel.DialIn(ns)
	if err != nil {
		return err
	}
	defer c.Close()
	index, err := p.setDevice(c, ns, g)
	if err != nil {
		return err
	}
	if err := kernel.In(ns, settle); err != nil {
		return err
	}
	return p.address(c, index, g)
}

// delete takes the device before the rules, and needs no namespace.
func (p *Part) delete(g plan.Gateway) error {
	ns, err := p.host.Open(g.Key())
	if err == nil {
		defer ns.Close()
		err = clear(ns)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Remove(p.mark(g.Key())); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func clear(ns *os.File) error {
	c, err := kernel.DialIn(ns)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := deleteDevice(c); err != nil {
		return err
	}
	return deleteRules(ns)
}

// device is the gateway's end of the way out. No link's device has its name.
const device = "wan0"

// protocol marks the default route (rtnetlink(7)): RTPROT_STATIC, which nothing
// else uses in the provider's namespace.
const protocol = unix.RTPROT_STATIC

// hardware is the device's address: the same whenever it is made again.
func hardware(g plan.Gateway) plan.Hardware {
	return plan.Port{Namespace: g.Key(), Interface: device}.Hardware()
}

func deleteDevice(c *kernel.Conn) error {
	l, err := c.LinkByName(device)
	if kernel.NotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.DeleteLink(l.Index)
}

// setDevice makes the device unless it is right.
func (p *Part) setDevice(c *kernel.Conn, ns *os.File, g plan.Gateway) (int, error) {
	home, err := p.host.Dial("")
	if err != nil {
		return 0, err
	}
	defer home.Close()
	if have, err := p.parent(c, home); err == nil && have == g.Interface {
		l, err := c.LinkByName(device)
		if err == nil && l.Hardware == hardware(g) {
			return l.Index, nil
		}
	}
	if err := deleteDevice(c); err != nil {
		return 0, err
	}
	below, err := home.LinkByName(g.Interface)
	if err != nil {
		return 0, fmt.Errorf("interface %s of the way out: %w", g.Interface, err)
	}
	mac := hardware(g)
	err = home.Do(kernel.NewLink(device, "macvlan", func(m *kernel.Message) { m.Uint32(macvlanMode, macvlanPrivate) }).
		Uint32(unix.IFLA_LINK, uint32(below.Index)).Attr(unix.IFLA_ADDRESS, mac[:]).
		Uint32(unix.IFLA_NET_NS_FD, uint32(ns.Fd())))
	if err != nil {
		return 0, fmt.Errorf("make a macvlan device on %s: %w", g.Interface, err)
	}
	l, err := c.LinkByName(device)
	return l.Index, err
}

// Attribute and value of linux/if_link.h.
const (
	macvlanMode    = 1 // IFLA_MACVLAN_MODE
	macvlanPrivate = 1 // MACVLAN_MODE_PRIVATE
)

// parent names the host's interface that the device is on; "": it is none of it.
func (p *Part) parent(c, home *kernel.Conn) (string, error) {
	l, err := c.LinkByName(device)
	if err != nil || l.Kind != "macvlan" {
		return "", err
	}
	id, err := c.NamespaceID(p.host.Home().Fd())
	if err != nil || id != l.PeerNS || id < 0 {
		return "", err
	}
	below, err := home.LinkByIndex(l.Peer)
	return below.Name, err
}

// settle prepares the device in the calling thread's namespace, before it is up.
// The tenant chooses addresses inside: the device must not answer for them.
func settle() error {
	for _, s := range [][2]string{
		{"ipv6/conf/wan0/disable_ipv6", "1"},
		{"ipv4/conf/wan0/arp_ignore", "1"}, {"ipv4/conf/wan0/arp_announce", "2"},
		{"ipv4/conf/wan0/accept_redirects", "0"}, {"ipv4/conf/wan0/send_redirects", "0"},
		{"ipv4/conf/all/accept_redirects", "0"}, {"ipv4/conf/all/send_redirects", "0"},
		{"ipv4/conf/wan0/rp_filter", "0"}, {"ipv4/conf/wan0/forwarding", "1"},
		// Connections that nobody answers or that began elsewhere are soon forgotten, or
		// never kept; those that stand for as long as RFC 5382 (REQ-5) asks.
		{"netfilter/nf_conntrack_tcp_timeout_syn_sent", "30"}, {"netfilter/nf_conntrack_tcp_timeout_syn_recv", "30"},
		{"netfilter/nf_conntrack_generic_timeout", "60"}, {"netfilter/nf_conntrack_tcp_loose", "0"},
		{"netfilter/nf_conntrack_tcp_timeout_established", "7440"},
	} {
		if err := kernel.Sysctl(s[0], s[1]); err != nil {
			return err
		}
	}
	return nil
}

// address gives the device its one address and the namespace its way on. The
// address has no subnet, so that all packets go to the next hop.
func (p *Part) address(c *kernel.Conn, index int, g plan.Gateway) error {
	have, err := c.Addresses(index)
	if err != nil {
		return err
	}
	want := kernel.Address{Index: index, Local: g.Address, Reach: single(g.Address)}
	for _, a := range have {
		if a != want {
			if err := c.DeleteAddress(a); err != nil {
				return err
			}
		}
	}
	if err := c.AddAddress(want); err != nil {
		return err
	}
	if err := c.Do(kernel.UpLink(index)); err != nil {
		return err
	}
	return c.Do(kernel.AddRoute(kernel.Route{Prefix: everywhere, Via: g.Via, Index: index}, protocol))
}
