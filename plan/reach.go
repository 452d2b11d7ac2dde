package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"sublet/vnet"
)

// Reach says which nodes of a lease the nodes on one host must reach, as the
// planned routes, and the routers' protocols, have it. There is nothing to build: it is what
// shall be true of what was built. Kept by datapath/reach.
type Reach struct {
	Lease vnet.LeaseID `json:"lease"`
	Nodes []Name       `json:"nodes"` // whom Pairs speak of, by name
	Pairs []ReachFrom  `json:"pairs"`
}

// ReachFrom is a node of the host and whom it must reach, as indexes of Nodes,
// which has those that are asked by IPv6 once more.
// Forwards are the interfaces on which it must forward what comes in: those of
// a router, unless its tenant routes (protocol none).
type ReachFrom struct {
	From     int      `json:"from"`
	To       []int    `json:"to"`
	To6      []int    `json:"to6,omitempty"` // by IPv6, of which the index is
	Forwards []string `json:"forwards,omitempty"`
}

// Kind of the section.
func (Reach) Kind() Kind { return KindReach }

// Key is the fabric.
func (r Reach) Key() string { return Fabric(r.Lease) }

// LeaseID is the lease whose nodes these are.
func (r Reach) LeaseID() vnet.LeaseID { return r.Lease }

// Meet is the item itself: there is no amount in it.
func (r Reach) Meet(Item) Item { return r }

func (r Reach) String() string {
	pairs := 0
	for _, p := range r.Pairs {
		pairs += len(p.To) + len(p.To6)
	}
	nodes := 0
	for _, n := range r.Nodes {
		if n.Address.Is4() { // not those that are there once more
			nodes++
		}
	}
	return fmt.Sprintf("%s %d pairs of %d nodes", r.Key(), pairs, nodes)
}

// mostPairedNodes is up to how many nodes of a lease every pair is looked at;
// beyond it, each node with its neighbours and with the one stated after it.
const mostPairedNodes = 50

// reaches lists, by host, whom its nodes must reach. A pair counts if there is
// a way in both directions: else neither gets an answer. Machines are asked, and
// do not ask.
func (n *network) reaches() map[vnet.HostID]Reach {
	all, machines := n.asked(), make(map[string]bool)
	n.machines = machines
	for _, node := range all { // answers to a machine go to its own kernel
		machines[node.Name] = node.Machine()
	}
	n.led = make(map[string]map[string]bool)
	to := make(map[string][]string)
	seen := make(map[[2]string]bool)
	pair := func(a, b string) {
		if key := [2]string{min(a, b), max(a, b)}; a != b && !seen[key] && n.leads(a, b) && n.leads(b, a) {
			seen[key] = true
			for _, p := range [][2]string{{a, b}, {b, a}} {
				if !machines[p[0]] {
					to[p[0]] = append(to[p[0]], p[1])
				}
			}
		}
	}
	if n.answersLate() {
		for _, l := range n.askedLinks() {
			if n.segment[l.Ends[0]] == nil && n.segment[l.Ends[1]] == nil && n.answeredBetween(l.Ends) {
				pair(l.Ends[0], l.Ends[1])
			}
		}
	} else if len(all) <= mostPairedNodes {
		for i, a := range all {
			for _, b := range all[:i] {
				pair(a.Name, b.Name)
			}
		}
	} else {
		for i := range max(0, len(all)-1) {
			pair(all[i].Name, all[i+1].Name)
		}
		for _, l := range n.askedLinks() {
			if n.segment[l.Ends[0]] == nil && n.segment[l.Ends[1]] == nil {
				pair(l.Ends[0], l.Ends[1])
			}
		}
	}
	return n.reachesOf(to)
}

func (n *network) reachesOf(to map[string][]string) map[vnet.HostID]Reach {
	hosts := make(map[vnet.HostID]Reach)
	for host, sources := range n.sources(to) {
		r := Reach{Lease: n.lease.ID()}
		number := make(map[string]int)
		for _, name := range n.involved(sources, to) {
			number[name] = len(r.Nodes)
			r.Nodes = append(r.Nodes, Name{Name: name, Address: n.address(name)})
		}
		number6 := make(map[string]int)
		for _, from := range sources {
			p := ReachFrom{From: number[from], Forwards: n.forwards(from)}
			for _, name := range to[from] {
				p.To = append(p.To, number[name])
				if !n.v6 || !n.askedBy6(from, name) {
					continue
				}
				if _, has := number6[name]; !has {
					number6[name] = len(r.Nodes)
					r.Nodes = append(r.Nodes, Name{Name: name, Address: n.ipv6(name)})
				}
				p.To6 = append(p.To6, number6[name])
			}
			slices.Sort(p.To)
			slices.Sort(p.To6)
			r.Pairs = append(r.Pairs, p)
		}
		hosts[host] = r
	}
	return hosts
}

// forwards lists the interfaces on which a node must forward.
func (n *network) forwards(name string) (devices []string) {
	protocol, isRouter := n.routers[name]
	if !isRouter || protocol == vnet.ProtocolNone {
		return nil
	}
	for _, i := range n.ports[name] {
		devices = append(devices, i.device)
	}
	slices.Sort(devices)
	return devices
}

// sources lists the nodes that must reach others, sorted, by host.
func (n *network) sources(to map[string][]string) map[vnet.HostID][]string {
	on := make(map[vnet.HostID][]string)
	for from := range to {
		host := n.lease.Mapping.Nodes[from]
		on[host] = append(on[host], from)
	}
	for _, names := range on {
		slices.Sort(names)
	}
	return on
}

// involved lists nodes and whom they must reach, sorted.
func (n *network) involved(sources []string, to map[string][]string) []string {
	names := slices.Clone(sources)
	for _, from := range sources {
		names = append(names, to[from]...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// leads follows the planned routes from a node to another. Where a protocol knows
// the way, it is believed to find it. What is found of nodes on the way is kept.
func (n *network) leads(from, to string) bool {
	known := n.led[to]
	if known == nil {
		known = make(map[string]bool)
		n.led[to] = known
	}
	if leads, ok := known[from]; ok {
		return leads
	}
	known[from] = false // whoever comes round again never arrives
	next, ok := n.nextHop(from, to)
	ok = ok && !n.overOpenFlow(from, next)
	if ok && next != to {
		_, forwards := n.routers[next]
		ok = forwards && n.leads(next, to)
	}
	known[from] = ok
	return ok
}

// overOpenFlow says whether two nodes are stations of a segment where it is a
// controller's matter who reaches whom.
func (n *network) overOpenFlow(from, next string) bool {
	return slices.ContainsFunc(n.ports[from], func(i nodeInterface) bool {
		if i.station == nil {
			return false
		}
		s := n.segment[n.behind(i)]
		return s.openFlow && slices.ContainsFunc(s.stations, func(st vnet.Station) bool { return st.Node == next })
	})
}

// nextHop is the node to which a node sends what is for another.
func (n *network) nextHop(at, to string) (next string, ok bool) {
	t := n.forwardingOf(at)
	dst := n.address(to)
	if r, ok := t.routes[single(dst)]; ok {
		return n.hopOf(r, to), n.passable(at, r)
	}
	for _, i := range n.ports[at] {
		if n.cut[i.near] {
			continue // there is another way, or none
		}
		if n.linkClass[i.near.link] != "" {
			continue // others lead there
		}
		subnet, numbered := n.numbered(i.near)
		switch {
		case i.station == nil && i.peer == to && (!numbered || subnet.Contains(dst)):
			return to, true
		case i.station != nil && n.subnet[n.behind(i)].Contains(dst):
			return to, n.onSegment(i, to)
		}
	}
	if subnet := n.within[dst]; t.heard[single(dst)] || subnet.IsValid() && t.heard[subnet] {
		return to, true
	} else if r, ok := t.routes[subnet]; ok {
		return n.hopOf(r, to), n.passable(at, r)
	}
	r, ok := t.routes[defaultPrefix(dst)]
	return n.hopOf(r, to), ok && n.passable(at, r)
}

// passable says whether no link is down on the way of a node's route to its next
// hop. Of a segment with such a link that is not known.
func (n *network) passable(at string, r Route) bool {
	for _, i := range n.ports[at] {
		if i.device == r.Interface {
			return !n.cut[i.near] && (i.station == nil || !n.segment[n.behind(i)].cut)
		}
	}
	return true
}

func (n *network) hopOf(r Route, to string) string {
	if !r.Via.IsValid() {
		return to
	}
	return n.byAddress[r.Via]
}

// onSegment says whether a node is a station that an interface's reaches.
func (n *network) onSegment(i nodeInterface, to string) bool {
	s := n.segment[n.behind(i)]
	return !s.cut && slices.ContainsFunc(s.stations, func(st vnet.Station) bool {
		return st.Node == to && n.adjacent(s, *i.station, st)
	})
}

// forwarding is a node's table for looking up.
type forwarding struct {
	routes map[netip.Prefix]Route
	heard  map[netip.Prefix]bool // by the router's protocol
}

// forwardingOf makes a node's, once.
func (n *network) forwardingOf(name string) forwarding {
	if f, made := n.forwardings[name]; made {
		return f
	}
	f := forwarding{routes: make(map[netip.Prefix]Route)}
	for _, r := range n.router(name).Routes {
		if r.Interface != "" {
			f.routes[r.Prefix] = r
		}
	}
	if speaksAny(n.routers[name]) {
		f.heard = n.heard(name, func(i nodeInterface) bool { return n.cut[i.near] })
	}
	if n.forwardings == nil {
		n.forwardings = make(map[string]forwarding)
	}
	n.forwardings[name] = f
	return f
}
