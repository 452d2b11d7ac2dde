package plan

import (
	"net/netip"
	"slices"

	"sublet/fabric"
	"sublet/vnet"
)

// pins turns paths between relays into relay lists. Links that are down count
// too: where others go, what was the only shortest path stays the only one, so
// a list holds while its path does.
type pins struct {
	fabric  *fabric.Fabric
	number  map[string]int // of a switch
	link    map[string]int // index in the substrate
	address []netip.Addr
}

// newPins knows the fabric's relays; nil: it has none.
func newPins(sub vnet.Substrate) *pins {
	if len(sub.Relays) == 0 {
		return nil
	}
	p := &pins{fabric: fabric.FabricOf(sub), number: make(map[string]int, len(sub.Switches)), link: make(map[string]int, len(sub.Links))}
	for i, name := range sub.Switches {
		p.number[name] = i
		p.address = append(p.address, sub.Relays[name])
	}
	for i, l := range sub.Links {
		p.link[l.Name] = i
	}
	return p
}

// list is the shortest relay list whose packets follow hops from a host to a
// host, without a relay where the fabric has no other way. nil: the path meets
// no two switches, or cannot be pinned, which admission refuses (embed), and is
// the fabric's own.
func (p *pins) list(hops []vnet.Hop) []netip.Addr {
	path := fabric.Path{}
	for i, hop := range hops {
		if at, isSwitch := p.number[hop.To()]; isSwitch {
			path.Nodes = append(path.Nodes, at)
			if i > 0 {
				path.Links = append(path.Links, p.link[hop.Link.Name])
			}
		}
	}
	if len(path.Nodes) < 2 {
		return nil
	}
	list := p.fabric.Pin(path)
	if len(list) > vnet.MaxRelays || p.fabric.Follow(path, list) != nil {
		return nil
	}
	relays := make([]netip.Addr, len(list))
	for i, r := range list {
		relays[i] = p.address[r.Node]
	}
	return relays
}

// listRoom is what a relay list takes of the MTU of a path at most: between n
// links there are n-1 switches that could be relays (docs/multipath.md).
func listRoom(relays map[string]netip.Addr, hops []vnet.Hop) int {
	inner := 0
	for _, hop := range hops {
		if relays[hop.From()].IsValid() && relays[hop.To()].IsValid() {
			inner++
		}
	}
	return listBytes(min(inner-1, vnet.MaxRelays))
}

// pin makes a tunnel's packets take the path that the embedding chose for
// them: in both directions, from the host where it begins.
func (c *Compiler) pin(p pathPlan, h tunnelHop, dir vnet.Direction) {
	if h.lists[dir] == nil {
		return
	}
	t := c.tunnel(p, h, dir)
	c.host(h.start(dir)).Add(Spread{
		Prefix: single(t.Remote), VNI: h.vni, Interface: t.Interface,
		Mode: HashMode, By: ByUDP, Paths: []RelayPath{{Relays: h.lists[dir], Lease: p.net.lease.ID()}},
	})
}

// lists finds the relays of a tunnel hop both ways, once.
func (c *Compiler) lists(h *tunnelHop) {
	if c.pins != nil {
		h.lists = [2][]netip.Addr{c.pins.list(h.hops), c.pins.list(reversed(h.hops))}
	}
}

// start is the host where a tunnel hop begins in a direction.
func (h tunnelHop) start(dir vnet.Direction) vnet.HostID {
	if dir == vnet.Reverse {
		return h.to
	}
	return h.from
}

func reversed(hops []vnet.Hop) []vnet.Hop {
	back := slices.Clone(hops)
	slices.Reverse(back)
	for i := range back {
		back[i].Dir = back[i].Dir.Opposite()
	}
	return back
}
