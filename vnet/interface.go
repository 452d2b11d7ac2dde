package vnet

import (
	"fmt"
	"slices"
)

// Interfaces lists the names of the interfaces at both ends of each link, by
// link: as stated, or eth and the number of the link among those of its node,
// switches included, from 0 on.
func (t Topology) Interfaces() map[string][2]string {
	names := make(map[string][2]string, len(t.Links))
	count := make(map[string]int)
	for _, l := range t.Links {
		both := l.Interfaces
		for end, node := range l.Ends {
			if both[end] == "" {
				both[end] = fmt.Sprintf("eth%d", count[node])
			}
			count[node]++
		}
		names[l.Name] = both
	}
	return names
}

// interfaceName is what Linux and what reads /proc/sys/net take: at most 15
// bytes, without slashes, spaces and colons, not . or .. (dev_valid_name).
var interfaceName = lazy(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$`)

// takenNames are interfaces that a namespace may have by itself, and what
// /proc/sys/net/ipv4/conf has beside interfaces.
var takenNames = []string{"all", "default", "lo", "wan0",
	"tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"}

// ValidInterface says whether an interface of a node can have a name.
func ValidInterface(name string) bool {
	return interfaceName().MatchString(name) && !slices.Contains(takenNames, name)
}

// linkInterfaces checks the names that links state by themselves.
func (c *checker) linkInterfaces(path string, l VirtualLink) error {
	for end, name := range l.Interfaces {
		where := at(path+".ends", end) + ".interface"
		switch {
		case name == "":
		case c.kinds[l.Ends[end]] == "switch":
			return fieldf(where, "ports of switch %q have no names: leave it out", l.Ends[end])
		case slices.Contains(takenNames, name):
			return fieldf(where, "%q is the name of another device: choose one such as eth1", name)
		case !ValidInterface(name):
			return fieldf(where, "%q is no name of an interface: use letters, digits and _ . -, at most 15, such as eth1", name)
		}
	}
	return nil
}

// interfaces checks that no node has two of one name, its device among them.
func (c *checker) interfaces(r Request) error {
	union := r.Union()
	devices := make(map[string]string)
	for _, n := range union.Nodes {
		if n.Device != "" {
			devices[n.Name] = n.Device
		}
	}
	if len(devices) == 0 && !slices.ContainsFunc(union.Links, func(l VirtualLink) bool { return l.Interfaces != [2]string{} }) {
		return nil
	}
	type owned struct{ node, name string }
	names, of := union.Interfaces(), make(map[owned]VirtualLink)
	for _, l := range union.Links {
		for end, node := range l.Ends {
			is := owned{node, names[l.Name][end]}
			if devices[node] == is.name {
				return fieldf(at(c.linkPath[l.Name]+".ends", end), "interface %s of %s is its device: name that of the link with interface:", is.name, node)
			}
			if other, twice := of[is]; twice {
				return fieldf(at(c.linkPath[l.Name]+".ends", end), "interface %s of %s belongs to link %s already: state another one with interface:", is.name, node, other.Name)
			}
			of[is] = l
		}
	}
	return nil
}
