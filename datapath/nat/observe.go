package nat

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

var everywhere = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// ownAddresses are the host's IPv4 addresses, and those of broadcasts of its
// networks, sorted.
func (p *Part) ownAddresses() ([]vnet.AddrRange, error) {
	home, err := p.host.Dial("")
	if err != nil {
		return nil, err
	}
	defer home.Close()
	all, err := home.Addresses(0)
	if err != nil {
		return nil, fmt.Errorf("read the host's addresses: %w", err)
	}
	var list []vnet.AddrRange
	for _, a := range all {
		if a.Local.Is4() {
			list = append(list, vnet.AddrRange{First: a.Local, Last: a.Local})
			if last := vnet.RangeOf(a.Reach).Last; a.Reach.Bits() < 31 {
				list = append(list, vnet.AddrRange{First: last, Last: last})
			}
		}
	}
	slices.SortFunc(list, func(a, b vnet.AddrRange) int { return a.First.Compare(b.First) })
	return slices.Compact(list), nil
}

// Observe reads gateways back. One of which only parts are there, or whose rules
// are not those of such a gateway, has no address: no plan has that.
func (p *Part) Observe(ctx context.Context, host *plan.Host) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	keys, err := p.host.Names("nat")
	if err != nil {
		return fmt.Errorf("list gateways: %w", err)
	}
	if len(keys) == 0 {
		return nil
	}
	own, err := p.ownAddresses()
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, node, ok := plan.ParseNamespace(key)
		if !ok {
			continue
		}
		g := plan.Gateway{Lease: id, Node: node}
		if err := p.observe(&g, own); err != nil {
			host.Unseen(fmt.Errorf("observe gateway %s: %w", key, err), id, plan.KindGateway)
			continue
		}
		host.Add(g)
	}
	return nil
}

func (p *Part) observe(g *plan.Gateway, own []vnet.AddrRange) error {
	ns, err := p.host.Open(g.Key())
	if errors.Is(err, os.ErrNotExist) {
		return p.host.Unseen(g.Key())
	}
	if err != nil {
		return err
	}
	defer ns.Close()
	c, err := kernel.DialIn(ns)
	if err != nil {
		return err
	}
	defer c.Close()
	address, err := p.observeDevice(c, g)
	if err != nil || !address.IsValid() {
		return err
	}
	have, err := readRules(ns)
	if err != nil {
		return fmt.Errorf("read rules: %w", err)
	}
	g.Refuse, g.Publish = parseRules(have, own)
	g.Address = address
	if !slices.Equal(have, texts(rulesOf(*g, own))) {
		g.Address = netip.Addr{}
	}
	return nil
}

// observeDevice reads where the device is and where its packets go. Without an
// address something of it is missing.
func (p *Part) observeDevice(c *kernel.Conn, g *plan.Gateway) (none netip.Addr, err error) {
	l, err := c.LinkByName(device)
	if kernel.NotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	home, err := p.host.Dial("")
	if err != nil {
		return none, err
	}
	defer home.Close()
	if g.Interface, err = p.parent(c, home); err != nil && !kernel.NotFound(err) {
		return none, err
	}
	routes, err := c.Routes(unix.AF_INET, protocol)
	if err != nil {
		return none, err
	}
	for _, r := range routes {
		if r.Prefix == everywhere && r.Index == l.Index {
			g.Via = r.Via
		}
	}
	addresses, err := c.Addresses(l.Index)
	if err != nil || len(addresses) != 1 || !l.Up || l.Hardware != hardware(*g) {
		return none, err
	}
	return addresses[0].Local, nil
}
