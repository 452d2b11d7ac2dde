package vnet

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"net/netip"
	"slices"
)

// DualStack is the topology with a subnet of IPv6 stated on every network of layer 2
// that has none: the first that is free of a prefix that follows from whose network it
// is. Left out are links of chains, of control, and of machines and devices that join,
// which speak IPv4 only.
func (t Topology) DualStack(tenant TenantID, network VNetID) Topology {
	t.Links = slices.Clone(t.Links)
	free := newLocalSubnets(tenant, network, t.Links)
	index := make(map[string]int, len(t.Links))
	for i, l := range t.Links {
		index[l.Name] = i
	}
	onlyIPv4 := make(map[string]bool)
	for _, n := range t.Nodes {
		onlyIPv4[n.Name] = n.Join != "" || n.Device != ""
	}
	for _, stations := range t.stationsApart() {
		if slices.ContainsFunc(stations, func(s Station) bool {
			return s.hasIPv6() || onlyIPv4[s.Node] || s.Link.Chain != "" || s.Link.Control
		}) {
			continue
		}
		subnet, ok := free.next()
		if !ok {
			break
		}
		at := stations[0]
		both := &t.Links[index[at.Link.Name]].Addresses
		both[at.End] = append(slices.Clone(both[at.End]), netip.PrefixFrom(subnet.Addr().Next(), subnet.Bits()))
	}
	return t
}

func (s Station) hasIPv6() bool {
	return slices.ContainsFunc(s.Link.Addresses[s.End], func(p netip.Prefix) bool { return p.Addr().Is6() })
}

// localSubnets are those of a network's prefix (RFC 4193: fd, 40 bits, here made of
// whose network it is, and 16 of the subnet).
type localSubnets struct {
	prefix [16]byte
	number uint16
	taken  map[netip.Prefix]bool
	wide   []netip.Prefix // stated ones of another length
}

func newLocalSubnets(tenant TenantID, network VNetID, links []VirtualLink) *localSubnets {
	s := &localSubnets{taken: make(map[netip.Prefix]bool)}
	sum := sha256.Sum256([]byte(string(tenant) + "/" + string(network)))
	s.prefix[0] = 0xfd
	copy(s.prefix[1:6], sum[:])
	all := netip.PrefixFrom(netip.AddrFrom16(s.prefix), 48)
	for _, l := range links {
		for _, p := range slices.Concat(l.Addresses[0], l.Addresses[1]) {
			switch subnet := p.Masked(); {
			case !subnet.Overlaps(all):
			case subnet.Bits() == localBits:
				s.taken[subnet] = true
			case !slices.Contains(s.wide, subnet):
				s.wide = append(s.wide, subnet)
			}
		}
	}
	return s
}

// localBits is the length of a subnet's prefix (RFC 4291, section 2.5.4).
const localBits = 64

// next is a subnet that nobody has; false: there is none left.
func (s *localSubnets) next() (netip.Prefix, bool) {
	for s.number < math.MaxUint16 {
		s.number++
		binary.BigEndian.PutUint16(s.prefix[6:], s.number)
		subnet := netip.PrefixFrom(netip.AddrFrom16(s.prefix), localBits)
		if !s.taken[subnet] && !slices.ContainsFunc(s.wide, subnet.Overlaps) {
			return subnet, true
		}
	}
	return netip.Prefix{}, false
}
