package vnet

import (
	"slices"
	"time"
)

// Balancer is the function of a chain that spreads its flows over nodes; false: it has
// none. It is the last one.
func (t Topology) Balancer(c Chain) (VirtualNode, bool) {
	if len(c.Via) == 0 {
		return VirtualNode{}, false
	}
	n, ok := t.Node(c.Via[len(c.Via)-1])
	return n, ok && n.IsBalancer()
}

// IsBalancer says whether a node is a function that spreads flows.
func (n VirtualNode) IsBalancer() bool {
	return n.IsFunction() && n.Function.Kind == FunctionBalancer
}

// Balanced are the nodes to which a chain leads beside its end.
func (t Topology) Balanced(c Chain) []string {
	n, ok := t.Balancer(c)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.Function.Nodes), func(name string) bool { return name == c.To })
}

// leastPatience is the shortest that can be held.
func (f Function) leastPatience() time.Duration {
	if f.Kind == FunctionBalancer || f.Probed() {
		return MinHealthPatience
	}
	return MinPatience
}

// balances is the first field of balancers that is stated.
func (f Function) balances() string {
	switch {
	case f.Service.IsValid():
		return "service"
	case len(f.Nodes) > 0:
		return "nodes"
	case f.Publish != 0:
		return "publish"
	}
	return "port"
}

// checkBalancer checks a balancer by itself.
func (f Function) checkBalancer(path string) error {
	switch {
	case !f.Service.IsValid():
		return fieldf(path+".service", "is missing: state the address that senders send to, such as 203.0.113.1")
	case !f.Service.Is4() || !f.Service.IsGlobalUnicast():
		return fieldf(path+".service", "%s is no address of IPv4 that stations have: state one such as 203.0.113.1", f.Service)
	case len(f.Nodes) == 0 || len(f.Nodes) > MaxBackends:
		return fieldf(path+".nodes", "%d nodes are not 1 to %d: name those that get the flows", len(f.Nodes), MaxBackends)
	case f.Publish != 0 && f.Port == 0:
		return fieldf(path+".port", "is missing: state the port that nodes have in the place of %d", f.Publish)
	}
	for i, name := range f.Nodes {
		if slices.Contains(f.Nodes[:i], name) {
			return fieldf(at(path+".nodes", i), "%q is there already: name each node once", name)
		}
	}
	return nil
}

// checkNodes checks the nodes that get a balancer's flows.
func (r Request) checkNodes(path string, n VirtualNode) error {
	for i, name := range n.Function.Nodes {
		where := at(path, i)
		to, ok := r.Node(name)
		switch {
		case !ok:
			return fieldf(where, "there is no node %q: name one that is stated under nodes", name)
		case to.IsFunction():
			return fieldf(where, "%q is a function, and flows go to nodes: name one that is stated under nodes", name)
		case to.Join != "" || to.Device != "":
			return fieldf(where, "%q is a machine or device that joins, to which chains do not lead: name a node", name)
		case to.Address == n.Function.Service:
			return fieldf(where, "%q has the address of the service, %s: choose another one for either", name, to.Address)
		}
		for _, c := range r.Chains {
			if c.From == name && slices.Contains(c.Via, n.Name) {
				return fieldf(where, "chain %s comes from %q, and would be a loop: name another node", c.Name, name)
			}
		}
		if !r.hasPlainLink(name) && r.leadsThrough(n.Name) {
			return fieldf(where, "%q has no link beside chains, by which it is reached and answers: link it with those that send, best effort will do", name)
		}
	}
	return nil
}

// has says whether the set is of TCP or UDP and has a port among its destinations.
func (f Packets) has(port uint16) bool {
	return (f.Protocol == ProtocolTCP || f.Protocol == ProtocolUDP) &&
		(f.DstPort == PortRange{} || f.DstPort.First <= port && port <= f.DstPort.Last)
}

// checkBalanced checks the balancer of a chain: answers come back by it, and it is the last
// function, since nodes follow it.
func (t Topology) checkBalanced(path string, c Chain) error {
	for i, name := range c.Via {
		n, _ := t.Node(name)
		switch {
		case !n.IsBalancer():
		case i < len(c.Via)-1:
			return fieldf(at(path+".via", i), "%s leads to nodes, and no function can follow it: name it last", name)
		case !c.Returns():
			return fieldf(path+".reverse", "is missing: answers come back to %s through the chain: state mirror", name)
		case !slices.Contains(n.Function.Nodes, c.To):
			return fieldf(path+".to", "%q is none of the nodes of %s, by one of which the way to the service leads: name one of them", c.To, name)
		case c.Match.Dst.IsValid() && !c.Match.Dst.Contains(n.Function.Service):
			return fieldf(path+".match.dst", "%s leaves out %s, the service of %s: state that, or leave dst out", c.Match.Dst, n.Function.Service, name)
		case n.Function.Publish != 0 && !c.Match.has(n.Function.Publish):
			return fieldf(path+".match", "leaves out port %d, which %s publishes: state proto and that port", n.Function.Publish, name)
		case c.Match.VLAN != nil && *c.Match.VLAN != 0:
			return fieldf(path+".match.vlan", "flows of VLANs are not balanced: leave it out")
		}
	}
	return nil
}
