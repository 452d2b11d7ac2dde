package lease

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"slices"

	"sublet/plan"
	"sublet/vnet"
)

// vnis are the tunnel identifiers in use, a bit each: a hundred thousand
// leases have a million of them, and each new one wants the lowest that is free.
type vnis struct {
	words []uint64
	full  int // words in which all are in use, before the first in which not all are
}

// firstVNI is above the identifiers that other software on a host hands out
// (Flannel 1, Docker from 4096).
const firstVNI vnet.VNI = 1 << 20

// bit is where an identifier's bit is.
func bit(vni vnet.VNI) (word int, mask uint64) {
	i := int(vni - firstVNI)
	return i / 64, 1 << (i % 64)
}

func (v *vnis) has(vni vnet.VNI) bool {
	word, mask := bit(vni)
	return word < len(v.words) && v.words[word]&mask != 0
}

// add takes an identifier; taking it twice is taking it once.
func (v *vnis) add(vni vnet.VNI) {
	word, mask := bit(vni)
	for len(v.words) <= word {
		v.words = append(v.words, 0)
	}
	v.words[word] |= mask
}

// lowest is the first identifier that is not in use.
func (v *vnis) lowest() vnet.VNI {
	for v.full < len(v.words) && v.words[v.full] == math.MaxUint64 {
		v.full++
	}
	free := 0
	if v.full < len(v.words) {
		free = bits.TrailingZeros64(^v.words[v.full])
	}
	return firstVNI + vnet.VNI(64*v.full+free)
}

// lowestThat is the first one that is not in use and will do.
func (v *vnis) lowestThat(will func(vnet.VNI) bool) vnet.VNI {
	next := v.lowest()
	for next <= vnet.MaxVNI && (v.has(next) || !will(next)) {
		next++
	}
	return next
}

func (v *vnis) take(byLink map[string][]vnet.VNI) {
	for _, list := range byLink {
		for _, vni := range list {
			v.add(vni)
		}
	}
}

func (v *vnis) free(byLink map[string][]vnet.VNI) {
	for _, list := range byLink {
		for _, vni := range list {
			if v.has(vni) {
				word, mask := bit(vni)
				v.words[word] &^= mask
				v.full = min(v.full, word)
			}
		}
	}
}

// number gives each tunnel of a mapping the lowest identifier that is not in
// use, and takes it: one per tunnel hop, between hosts that run agents, and one
// more for each segment of a chain.
// Those that OpenFlow switches must tell apart get other source ports than what else
// is between the same addresses.
func (v *vnis) number(sub vnet.Indexed, taken sources, links []vnet.VirtualLink, m vnet.Mapping) (map[string][]vnet.VNI, error) {
	byLink := make(map[string][]vnet.VNI)
	for _, link := range links {
		cuts, err := plan.AllTunnelHops(sub, m, link)
		if err != nil {
			v.free(byLink)
			return nil, err
		}
		if link.Chain != "" { // the first one numbers the chain's path
			cuts = slices.Insert(cuts, 0, nil)
		}
		for _, cut := range cuts {
			next, err := v.nextFor(sub, taken, cut)
			if err != nil {
				v.free(byLink)
				return nil, err
			}
			v.add(next)
			byLink[link.Name] = append(byLink[link.Name], next)
		}
	}
	return byLink, nil
}

// addresses gives every node its stated address or, in order of appearance,
// the next of 10.0.0.0/8 that no node states: first those that stand at no
// switch, then segment by segment, each from a block of its own, so that a
// segment is a subnet. Last bytes 0 and 255 are left out: tools take them for
// networks and broadcasts.
// A node that states none but has one at the end of a link is known by that.
func addresses(top vnet.Topology, links map[string]vnet.LinkAddresses) map[string]netip.Addr {
	a := allotment{given: make(map[string]netip.Addr), stated: make(map[netip.Addr]bool), next: netip.AddrFrom4([4]byte{10})}
	a.keep(top, links)
	at := make(map[string]int) // a node's first segment, counted from 1
	segments := top.Segments()
	for i, s := range segments {
		for _, st := range s.Stations {
			if at[st.Node] == 0 {
				at[st.Node] = i + 1
			}
		}
	}
	lists := make([][]string, len(segments)+1)
	for _, n := range top.All() {
		if n.Address.IsValid() {
			a.given[n.Name], a.stated[n.Address] = n.Address, true
		} else if !a.given[n.Name].IsValid() {
			lists[at[n.Name]] = append(lists[at[n.Name]], n.Name)
		}
	}
	for i, names := range lists {
		if i > 0 && len(names) > 0 {
			a.align(len(names))
		}
		for _, name := range names {
			a.give(name)
		}
	}
	return a.given
}

// linkAddresses gives the stations of every network of layer 2 where an address
// is stated their own: as stated, or the lowest that nobody states.
func linkAddresses(r vnet.Request, top vnet.Topology) map[string]vnet.LinkAddresses {
	if r.IPv6 {
		top = top.DualStack(r.Tenant, r.Network)
	}
	given, taken := make(map[string]vnet.LinkAddresses), make(map[netip.Addr]bool)
	for _, n := range top.All() {
		taken[n.Address] = true
	}
	for _, l := range top.Links {
		for _, list := range l.Addresses {
			for _, p := range list {
				taken[p.Addr()] = true
			}
		}
	}
	for _, a := range top.Addressings() {
		a.Assign(taken, func(s vnet.Station, all []netip.Prefix) {
			both := given[s.Link.Name]
			both[s.End] = all
			given[s.Link.Name] = both
		})
	}
	if len(given) == 0 {
		return nil
	}
	return given
}

// allotment is addresses being given.
type allotment struct {
	given   map[string]netip.Addr
	stated  map[netip.Addr]bool
	subnets []netip.Prefix // of links, IPv4
	next    netip.Addr
}

// keep gives nodes the first IPv4 address of their ends of links, and keeps the
// subnets there for themselves.
func (a *allotment) keep(top vnet.Topology, links map[string]vnet.LinkAddresses) {
	for _, l := range top.Links {
		for end, list := range links[l.Name] {
			for _, p := range list {
				if !p.Addr().Is4() {
					continue
				}
				if node := l.Ends[end]; !a.given[node].IsValid() {
					a.given[node] = p.Addr()
				}
				if !slices.Contains(a.subnets, p.Masked()) {
					a.subnets = append(a.subnets, p.Masked())
				}
			}
		}
	}
}

func (a *allotment) give(name string) {
	for last := a.next.As4()[3]; a.stated[a.next] || a.leave() || last == 0 || last == 255; last = a.next.As4()[3] {
		a.next = a.next.Next()
	}
	a.given[name], a.next = a.next, a.next.Next()
}

// leave goes to the end of a link's subnet, if the next address is in one.
func (a *allotment) leave() bool {
	i := slices.IndexFunc(a.subnets, func(p netip.Prefix) bool { return p.Contains(a.next) })
	if i >= 0 {
		a.next = after(a.subnets[i]).Prev()
	}
	return i >= 0
}

// align goes on to the next block that holds so many nodes, two last bytes in
// 256 left out, and that has no stated address of another's: a /24 or larger.
func (a *allotment) align(nodes int) {
	bits := 24
	for 1<<(32-bits)/256*254 < nodes {
		bits--
	}
	block := netip.PrefixFrom(a.next, bits).Masked()
	for block.Addr().Compare(a.next) < 0 || a.states(block) {
		block = netip.PrefixFrom(after(block), bits)
	}
	a.next = block.Addr()
}

// states says whether a stated address lies in a block.
func (a *allotment) states(block netip.Prefix) bool {
	for addr := range a.stated {
		if block.Contains(addr) {
			return true
		}
	}
	return slices.ContainsFunc(a.subnets, block.Overlaps)
}

// after is the first address behind an IPv4 prefix.
func after(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(b[:])+1<<(32-p.Bits()))))
}

// sameTunnels says what keeps a link's path from being cut into as many
// tunnels as it has identifiers for.
func sameTunnels(sub plan.Walker, l vnet.Lease, name string, tunnels int) error {
	link, _ := l.Request.Union().Link(name)
	if link.Chain != "" { // the first identifier is the chain's path
		tunnels--
	}
	cuts, err := plan.AllTunnelHops(sub, l.Mapping, link)
	if err == nil && len(cuts) != tunnels {
		err = fmt.Errorf("link %s would have %d tunnels instead of %d", name, len(cuts), tunnels)
	}
	return err
}
