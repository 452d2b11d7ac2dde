package vnet

import (
	"fmt"
	"net/netip"
	"slices"
)

// LinkAddresses are addresses of a virtual link's ends, by end, each with the
// length of its subnet's prefix.
type LinkAddresses [2][]netip.Prefix

// IsZero says that neither end has any.
func (a LinkAddresses) IsZero() bool { return len(a[0])+len(a[1]) == 0 }

// MaxAddresses bounds the addresses of one end of a link.
const MaxAddresses = 16

// Addressing is the subnets of one network of layer 2.
type Addressing struct {
	Stations []Station
	Stated   []netip.Prefix // subnets, masked, in order of the stations' addresses
}

// Addressings lists the networks of layer 2 where some end of a link states an
// address: links between nodes, and segments of switches.
func (t Topology) Addressings() []Addressing {
	if !slices.ContainsFunc(t.Links, func(l VirtualLink) bool { return !l.Addresses.IsZero() }) {
		return nil
	}
	var list []Addressing
	for _, stations := range t.stationsApart() {
		if a := addressing(stations); len(a.Stated) > 0 {
			list = append(list, a)
		}
	}
	return list
}

// stationsApart are the stations of each network of layer 2: of segments of switches,
// and of links between nodes.
func (t Topology) stationsApart() (list [][]Station) {
	for _, s := range t.Segments() {
		if len(s.Stations) > 0 {
			list = append(list, s.Stations)
		}
	}
	switches := make(map[string]bool, len(t.Switches))
	for _, s := range t.Switches {
		switches[s.Name] = true
	}
	for _, l := range t.Links {
		if !switches[l.Ends[0]] && !switches[l.Ends[1]] {
			list = append(list, []Station{{Node: l.Ends[0], Link: l}, {Node: l.Ends[1], Link: l, End: 1}})
		}
	}
	return list
}

func addressing(stations []Station) Addressing {
	a := Addressing{Stations: stations}
	for _, s := range stations {
		for _, p := range s.Link.Addresses[s.End] {
			if !slices.Contains(a.Stated, p.Masked()) {
				a.Stated = append(a.Stated, p.Masked())
			}
		}
	}
	return a
}

// Main gives the subnet, of IPv4 or of IPv6, in which every station has an
// address: that of the first address that is stated.
func (a Addressing) Main(is4 bool) (subnet netip.Prefix, ok bool) {
	i := slices.IndexFunc(a.Stated, func(p netip.Prefix) bool { return p.Addr().Is4() == is4 })
	if i < 0 {
		return netip.Prefix{}, false
	}
	return a.Stated[i], true
}

// Assign gives every station its stated addresses and, in a family of which it
// states none, the lowest of the main subnet that is not taken. What is given
// is taken then.
func (a Addressing) Assign(taken map[netip.Addr]bool, give func(Station, []netip.Prefix)) {
	next := make(map[bool]netip.Addr)
	for _, s := range a.Stations {
		all := slices.Clone(s.Link.Addresses[s.End])
		for _, is4 := range []bool{true, false} {
			subnet, ok := a.Main(is4)
			if !ok || slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Addr().Is4() == is4 }) {
				continue
			}
			from := next[is4]
			if !from.IsValid() {
				from = subnet.Addr()
			}
			if free, ok := freeIn(subnet, from, taken); ok {
				taken[free], next[is4] = true, free
				all = append(all, netip.PrefixFrom(free, subnet.Bits()))
			}
		}
		give(s, all)
	}
}

// freeIn is the first address of a subnet from one on that a station can have and
// that is not taken.
func freeIn(subnet netip.Prefix, from netip.Addr, taken map[netip.Addr]bool) (netip.Addr, bool) {
	for ; subnet.Contains(from); from = from.Next() {
		if !taken[from] && !reserved(subnet, from) {
			return from, true
		}
	}
	return netip.Addr{}, false
}

// reserved says that an address names the subnet itself or all of its stations.
// Links of two have no such addresses (RFC 3021, RFC 6164).
func reserved(subnet netip.Prefix, a netip.Addr) bool {
	if subnet.Bits() >= a.BitLen()-1 {
		return false
	}
	return a == subnet.Masked().Addr() || a.Is4() && !subnet.Contains(a.Next())
}

// At is the first IPv4 address of one end of a link: its own, or its node's.
func (l Lease) At(link VirtualLink, end int) netip.Addr {
	for _, p := range l.LinkAddresses[link.Name][end] {
		if p.Addr().Is4() {
			return p.Addr()
		}
	}
	return l.Addresses[link.Ends[end]]
}

// AddressesOf lists a node's addresses in the running stage: the one by which it
// is known, then those of its ends of links.
func (l Lease) AddressesOf(node string) []netip.Addr {
	list := []netip.Addr{l.Addresses[node]}
	for _, link := range l.Topology().Links {
		for end, name := range link.Ends {
			if name != node {
				continue
			}
			for _, p := range l.LinkAddresses[link.Name][end] {
				if !slices.Contains(list, p.Addr()) {
					list = append(list, p.Addr())
				}
			}
		}
	}
	return list
}

// shortest are the shortest prefixes of a link's subnets.
const shortest4, shortest6 = 8, 16

// checkLinkAddress wants an address that a station can have in its subnet.
func checkLinkAddress(path string, p netip.Prefix) error {
	a, least := p.Addr(), shortest6
	if a.Is4() {
		least = shortest4
		if err := checkAddress(path, a); err != nil {
			return err
		}
	}
	switch {
	case !p.IsValid():
		return fieldf(path, "is no address with the length of its prefix: state one such as 10.0.12.1/24")
	case a.Is4In6(), a.Is6() && (a.IsMulticast() || a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast()):
		return fieldf(path, "%s is not a unicast address of global scope: state one such as 2001:db8:12::1/64", a)
	case p.Bits() < least || p.IsSingleIP():
		return fieldf(path, "%s: a prefix of %d bits is not between %d and %d: state that of the link's subnet", p, p.Bits(), least, a.BitLen()-1)
	case reserved(p, a):
		return fieldf(path, "%s is the %s address of %s: choose another of that subnet", a, reservedName(p), p.Masked())
	}
	return nil
}

func reservedName(p netip.Prefix) string {
	if p.Addr() == p.Masked().Addr() {
		return "network"
	}
	return "broadcast"
}

// linkAddresses checks those of a link by themselves, and that nobody else has
// them.
func (c *checker) linkAddresses(path string, l VirtualLink) error {
	for end, list := range l.Addresses {
		where := at(path+".ends", end) + ".address"
		if len(list) > 0 && c.kinds[l.Ends[end]] == "switch" && !(l.Control && c.switches[l.Ends[end]].Kind == SwitchOpenFlow) {
			return fieldf(where, "switch %q forwards frames and has no address: leave it out", l.Ends[end])
		}
		if len(list) > MaxAddresses {
			return fieldf(where, "%d addresses are more than %d: keep fewer", len(list), MaxAddresses)
		}
		for i, p := range list {
			if err := checkLinkAddress(at(where, i), p); err != nil {
				return err
			}
			if err := c.takeAddress(at(where, i), p.Addr(), l, end); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeAddress notes whose an address is. A node may state one of its ends' as its own.
func (c *checker) takeAddress(path string, a netip.Addr, l VirtualLink, end int) error {
	owner := fmt.Sprintf("%s on link %s", l.Ends[end], l.Name)
	if other, ok := c.addresses[a.String()]; ok && other != l.Ends[end] {
		return fieldf(path, "%s is the address of %q already: choose another, or leave it out", a, other)
	}
	c.addresses[a.String()] = owner
	return nil
}

// subnets checks that the stations of each network of layer 2 share subnets,
// which overlap with no others.
func (c *checker) subnets(r Request) error {
	type owned struct {
		netip.Prefix
		link string
	}
	var all []owned
	taken := make(map[netip.Addr]bool, len(c.addresses))
	for text := range c.addresses {
		taken[netip.MustParseAddr(text)] = true
	}
	for _, a := range r.Union().Controlled().Addressings() {
		if err := c.subnet(a, taken); err != nil {
			return err
		}
		for _, p := range a.Stated {
			all = append(all, owned{p, a.Stations[slices.IndexFunc(a.Stations, func(s Station) bool { return s.in(p) })].Link.Name})
		}
	}
	slices.SortStableFunc(all, func(x, y owned) int {
		if less := x.Addr().Compare(y.Addr()); less != 0 {
			return less
		}
		return x.Bits() - y.Bits()
	})
	for i := 1; i < len(all); i++ {
		if all[i-1].Overlaps(all[i].Prefix) {
			return fieldf(c.linkPath[all[i].link]+".ends", "%s overlaps with %s of link %s: each link, or switches' segment, needs subnets of its own",
				all[i].Prefix, all[i-1].Prefix, all[i-1].link)
		}
	}
	return nil
}

// in says that a station states an address of a subnet.
func (s Station) in(subnet netip.Prefix) bool {
	return slices.ContainsFunc(s.Link.Addresses[s.End], func(p netip.Prefix) bool { return p.Masked() == subnet })
}

// subnet checks the stations of one network of layer 2.
func (c *checker) subnet(a Addressing, taken map[netip.Addr]bool) error {
	for _, is4 := range []bool{true, false} {
		main, ok := a.Main(is4)
		if !ok {
			continue
		}
		for _, s := range a.Stations {
			for i, p := range s.Link.Addresses[s.End] {
				if p.Addr().Is4() == is4 && !s.in(main) {
					return fieldf(at(at(c.linkPath[s.Link.Name]+".ends", s.End)+".address", i),
						"%s is not in the subnet %s of the other end: state an address of one subnet at both, with prefixes of one length", p, main)
				}
			}
		}
	}
	var full error
	a.Assign(taken, func(s Station, all []netip.Prefix) {
		for _, is4 := range []bool{true, false} {
			main, ok := a.Main(is4)
			if ok && !slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Masked() == main }) {
				full = fieldf(c.linkPath[s.Link.Name]+".ends", "%s has too few addresses for %d stations: state a shorter prefix", main, len(a.Stations))
			}
		}
	})
	return full
}
