package vnet

import "net/netip"

// Station is a node or router on a segment, by the link that joins it.
type Station struct {
	Node string
	Link VirtualLink
	End  int // of Link, at Node
}

// Segment is one network of layer 2: switches that are linked to each other,
// and what stands at their other links.
type Segment struct {
	Switches []string
	Stations []Station // by order of links
}

// Segments lists the networks of layer 2 of a topology, in the order in which
// their first switches are stated.
func (t Topology) Segments() []Segment {
	joined := newForest(t.Switches)
	for _, l := range t.Links {
		joined.join(l.Ends)
	}
	index := make(map[string]int)
	var list []Segment
	for _, s := range t.Switches {
		root := joined.root(s.Name)
		if _, seen := index[root]; !seen {
			index[root] = len(list)
			list = append(list, Segment{})
		}
		list[index[root]].Switches = append(list[index[root]].Switches, s.Name)
	}
	for _, l := range t.Links {
		for end, node := range l.Ends {
			if far := l.Ends[1-end]; joined[far] != "" && joined[node] == "" {
				segment := &list[index[joined.root(far)]]
				segment.Stations = append(segment.Stations, Station{Node: node, Link: l, End: end})
			}
		}
	}
	return list
}

// Loops names the links between switches that must not carry frames, or these
// would go round for ever: those that join what earlier links have joined. Links
// at a switch of kind openflow are a matter of its controller.
func (t Topology) Loops() map[string]bool {
	joined := newForest(without(t.Switches, func(s VirtualSwitch) bool { return s.Kind == SwitchOpenFlow }))
	loops := make(map[string]bool)
	for _, l := range t.Links {
		if joined[l.Ends[0]] != "" && joined[l.Ends[1]] != "" && !joined.join(l.Ends) {
			loops[l.Name] = true
		}
	}
	return loops
}

// forest is a union-find over switches: the parent of each.
type forest map[string]string

func newForest(switches []VirtualSwitch) forest {
	f := make(forest, len(switches))
	for _, s := range switches {
		f[s.Name] = s.Name
	}
	return f
}

func (f forest) root(name string) string {
	for f[name] != name {
		f[name] = f[f[name]]
		name = f[name]
	}
	return name
}

// join joins two switches; false: they were joined, or one is no switch.
func (f forest) join(ends [2]string) bool {
	if f[ends[0]] == "" || f[ends[1]] == "" {
		return false
	}
	a, b := f.root(ends[0]), f.root(ends[1])
	f[b] = a
	return a != b
}

// LinkLocal is the IPv6 address that a station gives itself by its Ethernet
// address (RFC 4291, appendix A; RFC 4862, section 5.3).
func LinkLocal(mac [6]byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]})
}
