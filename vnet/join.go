package vnet

import (
	"net/netip"
	"slices"
)

// Join is a place where machines that are no hosts of the substrate become nodes
// (VirtualNode.Join): ports of UDP of an address of a host, at each of which one
// node's tunnel of WireGuard ends.
type Join struct {
	Name     string     `json:"name"`
	Host     HostID     `json:"host"`
	Address  netip.Addr `json:"address"` // of the host, where they reach it
	Ports    PortRange  `json:"ports"`   // one for each node
	Capacity Rate       `json:"capacity_bps"`
}

// Bounds of places to join.
const (
	MaxJoins     = 256
	MaxJoinPorts = 1024 // of one
)

// AnyJoin is what a node says that takes whichever place to join has room.
// Admission puts its name there.
const AnyJoin = "any"

// JoinOf finds a place to join by name.
func (s Substrate) JoinOf(name string) (Join, bool) {
	i := slices.IndexFunc(s.Joins, func(j Join) bool { return j.Name == name })
	if i < 0 {
		return Join{}, false
	}
	return s.Joins[i], true
}

// takeJoins gives nodes that join anywhere the places that chosen names; false:
// there are none.
func (r *Request) takeJoins(chosen func(node string) string) (any bool) {
	r.Stages = slices.Clone(r.Stages)
	for _, top := range r.topologies() {
		top.Nodes = slices.Clone(top.Nodes)
		for i := range top.Nodes {
			if n := &top.Nodes[i]; n.Join == AnyJoin && chosen(n.Name) != "" {
				n.Join, any = chosen(n.Name), true
			}
		}
	}
	return any
}

// TakeJoin gives all nodes that join anywhere one place; false: there are none.
func (r *Request) TakeJoin(name string) (any bool) {
	return r.takeJoins(func(string) string { return name })
}

// checkJoins checks the places to join, once hosts are right.
func (s Substrate) checkJoins() error {
	if len(s.Joins) > MaxJoins {
		return fieldf("joins", "%d places to join are more than %d: leave some out", len(s.Joins), MaxJoins)
	}
	for i, j := range s.Joins {
		path := at("joins", i)
		if err := j.check(path); err != nil {
			return err
		}
		if _, ok := s.HostOf(string(j.Host)); !ok {
			return fieldf(path+".host", "there is no host %q: state whose address it is", j.Host)
		}
		for k, other := range s.Joins[:i] {
			if other.Name == j.Name {
				return fieldf(path+".name", "there is a place to join %q already: choose another name", j.Name)
			}
			if other.Address == j.Address && (other.Host != j.Host || other.Ports.Contains(j.Ports.First) || j.Ports.Contains(other.Ports.First)) {
				return fieldf(path+".ports", "%s has some of them at %s, too: a port is of one place", at("joins", k), j.Address)
			}
		}
	}
	return nil
}

// check checks a place to join by itself.
func (j Join) check(path string) error {
	if err := checkName(path+".name", j.Name); err != nil {
		return err
	}
	if j.Name == AnyJoin {
		return fieldf(path+".name", "%q stands for whichever has room: choose another name", j.Name)
	}
	if err := checkAddress(path+".address", j.Address); err != nil {
		return err
	}
	if j.Ports.First == 0 || j.Ports.Last < j.Ports.First {
		return fieldf(path+".ports", "is missing: state those of UDP that nothing else on the host uses, such as 51820-51899")
	}
	if n := int(j.Ports.Last) - int(j.Ports.First) + 1; n > MaxJoinPorts {
		return fieldf(path+".ports", "%d ports are more than %d: state fewer", n, MaxJoinPorts)
	}
	if j.Capacity == 0 {
		return fieldf(path+".capacity", "is missing: state the rate per direction, such as 100Mbit")
	}
	return checkRate(path+".capacity", j.Capacity, false)
}

// checkJoin checks what a node says that another machine becomes.
func (n VirtualNode) checkJoin(path, kind string) error {
	switch {
	case n.Join == "":
		return nil
	case kind != "node":
		return fieldf(path+".join", "only nodes are joined by machines: write it under nodes")
	case n.Host != "" || n.Site != "" || n.Exclusive:
		return fieldf(path+".join", "the place to join says where the tunnel ends: leave out host, site and exclusive")
	case n.CPU != 0 || n.Memory != 0:
		return fieldf(path+".join", "the machine that joins has its own processors and memory: leave out cpu and memory")
	case len(n.Stated()) > 0:
		return fieldf(path+"."+n.Stated()[0], "the machine that joins is the user's, and is set up there: leave it out")
	}
	return checkName(path+".join", n.Join)
}

// oneLink sees to it that nodes that machines become have one link at a time: what
// leads on between two is no matter of a tunnel, and link and tunnel are all that
// it joins.
func (c *checker) oneLink(t Topology) error {
	has := make(map[string]string)
	for _, n := range t.Nodes {
		if n.Join != "" {
			has[n.Name] = "-"
		}
	}
	for _, l := range t.Links {
		for end, name := range l.Ends {
			switch {
			case has[name] == "":
			case has[name] != "-":
				return fieldf(c.linkPath[l.Name], "node %q, which joins, has link %q already: link it to a switch or router that has the others", name, has[name])
			case len(l.Addresses[end]) > 0:
				return fieldf(c.linkPath[l.Name], "node %q, which joins, has one address: state it at the node, not at the end of a link", name)
			default:
				has[name] = l.Name
			}
		}
	}
	return nil
}
