package vnet

// Indexed is a substrate whose hosts and links are found by name without
// looking through all of them, for who asks often of a large one.
type Indexed struct {
	Substrate
	hosts, links map[string]int
	at           map[string][]int
}

// Index prepares a substrate, which must not be changed from then on.
func (s Substrate) Index() Indexed {
	x := Indexed{s, make(map[string]int, len(s.Hosts)), make(map[string]int, len(s.Links)), make(map[string][]int)}
	for i, h := range s.Hosts {
		x.hosts[string(h.Name)] = i
	}
	for i, l := range s.Links {
		x.links[l.Name] = i
		for _, end := range l.Ends {
			x.at[end] = append(x.at[end], i)
		}
	}
	return x
}

// HostOf finds a host by name.
func (x Indexed) HostOf(name string) (SubstrateNode, bool) {
	i, ok := x.hosts[name]
	if !ok {
		return SubstrateNode{}, false
	}
	return x.Hosts[i], true
}

// LinkOf finds a substrate link by name.
func (x Indexed) LinkOf(name string) (SubstrateLink, bool) {
	i, ok := x.links[name]
	if !ok {
		return SubstrateLink{}, false
	}
	return x.Links[i], true
}

// LinksAt lists the links, by their place in Links, that end at a host or switch.
func (x Indexed) LinksAt(name string) []int { return x.at[name] }

// Walk is Substrate's.
func (x Indexed) Walk(from HostID, path Path) ([]Hop, error) { return walk(x.LinkOf, from, path) }
