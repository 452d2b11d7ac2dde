package plan

import (
	"cmp"
	"net/netip"
	"slices"

	"sublet/vnet"
)

// A segment is what switches join: its stations reach each other by ARP.
//
// A segment whose stations have addresses of their own has their subnet. Else
// every node has one address, and the subnet is that of the segment's natives:
// the stations that have no earlier segment. The others, such as a router
// between two segments, are reached there by routes of their own.

// segment of the running stage.
type segment struct {
	stations []vnet.Station
	answers  map[string]string // of a node's links, the one by which it answers for its address
	private  bool              // some port may not send to some other
	cut      bool              // some link of it is down
	openFlow bool              // at some switch a controller says what is forwarded
}

// segments finds what the stage's switches join.
func (n *network) segments() {
	n.loops = n.top.Loops()
	for _, s := range n.top.Switches {
		n.switches[s.Name] = s
	}
	for _, made := range n.top.Segments() {
		s := &segment{stations: made.Stations, answers: n.answers(made.Stations)}
		for _, name := range made.Switches {
			n.segment[name] = s
			s.openFlow = s.openFlow || n.switches[name].Kind == vnet.SwitchOpenFlow
			for _, p := range n.switches[name].Ports {
				s.private = s.private || len(p.To) > 0
			}
		}
	}
}

// answers says by which of its links each node of a segment is reached: the
// first of its Stations answers for its address.
func (n *network) answers(stations []vnet.Station) map[string]string {
	links, least := make(map[string]string), make(map[string]Hardware)
	for _, st := range stations {
		h := n.port(st.Link, st.End).Hardware()
		if have, twice := least[st.Node]; !twice || slices.Compare(h[:], have[:]) < 0 {
			links[st.Node], least[st.Node] = st.Link.Name, h
		}
	}
	return links
}

// subnets gives every switch of any stage the subnet of its segment's natives.
func (n *network) subnets(union vnet.Topology) {
	native := make(map[string]bool)
	for _, s := range union.Segments() {
		var addresses []netip.Addr
		mine := make(map[string]bool)
		stated := netip.Prefix{}
		for _, st := range s.Stations {
			if subnet, ok := n.numbered(linkEnd{st.Link.Name, st.End}); ok && !stated.IsValid() {
				stated = subnet
			}
			if !native[st.Node] && !mine[st.Node] {
				mine[st.Node] = true
				addresses = append(addresses, n.address(st.Node))
			}
		}
		var others []netip.Addr
		for _, node := range union.All() {
			if !mine[node.Name] {
				others = append(others, n.all[node.Name]...)
			}
		}
		subnet := stated
		if !subnet.IsValid() {
			subnet = Subnet(addresses, others)
		}
		for _, name := range s.Switches {
			n.subnet[name] = subnet
		}
		for name := range mine {
			native[name] = true
		}
	}
}

// usual is the subnet that people expect.
const usual = 24

// Subnet is the smallest prefix, at least a /24, that holds all of some
// addresses, none as its first or last; zero if it held one of the others too.
func Subnet(addresses, others []netip.Addr) netip.Prefix {
	if len(addresses) == 0 {
		return netip.Prefix{}
	}
	for bits := usual; bits > 0; bits-- {
		p := netip.PrefixFrom(addresses[0], bits).Masked()
		if slices.ContainsFunc(others, p.Contains) {
			break
		}
		if !slices.ContainsFunc(addresses, func(a netip.Addr) bool { return !inside(p, a) }) {
			return p
		}
	}
	return netip.Prefix{}
}

// inside says that a prefix holds an address, and its neighbours too: it is
// neither the network's nor the broadcast address.
func inside(p netip.Prefix, a netip.Addr) bool {
	return p.Contains(a) && p.Contains(a.Prev()) && p.Contains(a.Next())
}

// adjacent says whether two stations of a segment may send to each other
// through its switches.
func (n *network) adjacent(s *segment, a, b vnet.Station) bool {
	return !s.private || n.passes(a, b) && n.passes(b, a)
}

// joined says whether no link is down on the way between two stations of a segment.
// Which ways there are between switches of kind openflow is a matter of their
// controller.
func (n *network) joined(s *segment, a, b vnet.Station) bool {
	if !s.cut {
		return true
	}
	if a.Link.Down || b.Link.Down {
		return false
	}
	for at := a.Link.Ends[1-a.End]; !s.openFlow; {
		out := n.towards(at, b)
		if out.Down {
			return false
		}
		if out.Name == b.Link.Name {
			break
		}
		at = far(out, at)
	}
	return true
}

// passes walks the tree of switches from one station towards another.
func (n *network) passes(from, to vnet.Station) bool {
	in := from.Link.Name
	for at := from.Link.Ends[1-from.End]; ; {
		out := n.towards(at, to)
		if !n.switches[at].Passes(in, out.Name) {
			return false
		}
		if out.Name == to.Link.Name {
			return true
		}
		in, at = out.Name, far(out, at)
	}
}

func far(l vnet.VirtualLink, at string) string {
	if l.Ends[0] == at {
		return l.Ends[1]
	}
	return l.Ends[0]
}

// towards is the link by which a switch reaches a station of its segment.
func (n *network) towards(name string, st vnet.Station) vnet.VirtualLink {
	last := st.Link.Ends[1-st.End]
	if name == last {
		return st.Link
	}
	return n.tree(last)[name]
}

// tree gives, by switch, the link that leads to one switch of its segment:
// breadth first over the links that are not blocked.
func (n *network) tree(root string) map[string]vnet.VirtualLink {
	if made := n.trees[root]; made != nil {
		return made
	}
	made := make(map[string]vnet.VirtualLink)
	for queue := []string{root}; len(queue) > 0; queue = queue[1:] {
		for _, l := range n.trunks[queue[0]] {
			next := far(l, queue[0])
			if _, seen := made[next]; !seen && next != root {
				made[next] = l
				queue = append(queue, next)
			}
		}
	}
	n.trees[root] = made
	return made
}

// stations are those of a switch's segment, by the port of it that leads there,
// less those that a switch of kind openflow stands before: its controller may
// choose any way to them.
func (n *network) stations(name string) (list []Station) {
	for _, st := range n.segment[name].stations {
		if n.segment[name].openFlow && n.beyondOpenFlow(name, st) {
			continue
		}
		out := n.towards(name, st)
		list = append(list, Station{
			Address: n.endAddress(linkEnd{st.Link.Name, st.End}, st.Node), Hardware: n.port(st.Link, st.End).Hardware(),
			Interface: n.device[linkEnd{out.Name, endAt(out, name)}],
		})
	}
	slices.SortFunc(list, func(a, b Station) int {
		return cmp.Or(a.Address.Compare(b.Address), slices.Compare(a.Hardware[:], b.Hardware[:]))
	})
	return list
}

// beyondOpenFlow says whether frames between a switch and a station meet a switch
// of kind openflow.
func (n *network) beyondOpenFlow(name string, st vnet.Station) bool {
	for at := name; ; {
		if n.switches[at].Kind == vnet.SwitchOpenFlow {
			return true
		}
		out := n.towards(at, st)
		if out.Name == st.Link.Name {
			return false
		}
		at = far(out, at)
	}
}

// endAt is the end of a link that is at a node or switch.
func endAt(l vnet.VirtualLink, name string) int {
	if l.Ends[0] == name {
		return 0
	}
	return 1
}
