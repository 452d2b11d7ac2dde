package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"sublet/vnet"
)

// Reach says which nodes of a lease the nodes on one host must reach, as the
// planned routes, and OSPF, have it. There is nothing to build: it is what
// shall be true of what was built. Kept by datapath/reach.
type Reach struct {
	Lease vnet.LeaseID `json:"lease"`
	Nodes []Name       `json:"nodes"` // whom Pairs speak of, by name
	Pairs []ReachFrom  `json:"pairs"`
}

// ReachFrom is a node of the host and whom it must reach, as indexes of Nodes.
// Forwards are the interfaces on which it must forward what comes in: those of
// a router, unless its tenant routes (protocol none).
type ReachFrom struct {
	From     int      `json:"from"`
	To       []int    `json:"to"`
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
		pairs += len(p.To)
	}
	return fmt.Sprintf("%s %d pairs of %d nodes", r.Key(), pairs, len(r.Nodes))
}

// mostPairedNodes is up to how many nodes of a lease every pair is looked at;
// beyond it, each node with its neighbours and with the one stated after it.
const mostPairedNodes = 50

// reaches lists, by host, whom its nodes must reach. A pair counts if there is
// a way in both directions: else neither gets an answer.
func (n *network) reaches() map[vnet.HostID]Reach {
	n.led = make(map[string]map[string]bool)
	to := make(map[string][]string)
	seen := make(map[[2]string]bool)
	pair := func(a, b string) {
		if key := [2]string{min(a, b), max(a, b)}; a != b && !seen[key] && n.leads(a, b) && n.leads(b, a) {
			seen[key] = true
			to[a], to[b] = append(to[a], b), append(to[b], a)
		}
	}
	all := n.top.All()
	if n.answersLate() {
		for _, l := range n.top.Links {
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
		for i := range all[1:] {
			pair(all[i].Name, all[i+1].Name)
		}
		for _, l := range n.top.Links {
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
		for _, from := range sources {
			p := ReachFrom{From: number[from], Forwards: n.forwards(from)}
			for _, name := range to[from] {
				p.To = append(p.To, number[name])
			}
			slices.Sort(p.To)
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

// leads follows the planned routes from a node to another. Where OSPF knows the
// way, it is believed to find it. What is found of nodes on the way is kept.
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
	if ok && next != to {
		_, forwards := n.routers[next]
		ok = forwards && n.leads(next, to)
	}
	known[from] = ok
	return ok
}

// nextHop is the node to which a node sends what is for another.
func (n *network) nextHop(at, to string) (next string, ok bool) {
	t := n.forwardingOf(at)
	dst := n.address(to)
	if r, ok := t.routes[single(dst)]; ok {
		return n.hopOf(r, to), true
	}
	for _, i := range n.ports[at] {
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
		return n.hopOf(r, to), true
	}
	r, ok := t.routes[defaultPrefix(dst)]
	return n.hopOf(r, to), ok
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
	return slices.ContainsFunc(s.stations, func(st vnet.Station) bool {
		return st.Node == to && n.adjacent(s, *i.station, st)
	})
}

// forwarding is a node's table for looking up.
type forwarding struct {
	routes map[netip.Prefix]Route
	heard  map[netip.Prefix]bool // by OSPF
}

// forwardingOf makes a node's, once.
func (n *network) forwardingOf(name string) forwarding {
	if f, made := n.forwardings[name]; made {
		return f
	}
	f := forwarding{routes: make(map[netip.Prefix]Route)}
	for _, r := range n.router(name).Routes {
		f.routes[r.Prefix] = r
	}
	if n.routers[name] == vnet.ProtocolOSPF {
		f.heard = n.heard(name)
	}
	if n.forwardings == nil {
		n.forwardings = make(map[string]forwarding)
	}
	n.forwardings[name] = f
	return f
}
