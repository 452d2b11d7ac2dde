package plan

import (
	"fmt"
	"slices"

	"sublet/vnet"
)

// A node of a balancer has a path, numbered by the balancer's link to it. Its first
// index is of what asks whether the node lives, the second of the answer; then each
// chain has one for packets to the node and one for those from it.
const (
	AskIndex       = firstIndex
	answerIndex    = firstIndex - 1
	balancedIndex  = firstIndex - 2
	balancedPlaces = balancedIndex / 2
)

// AskPort is that from which nodes of balancers are asked: of TCPMUX (RFC 1078), which
// no program takes for its end of a connection.
const AskPort = 1

// fillBalancer says to whom a balancer leads, and from where it asks them.
func (n *network) fillBalancer(f *ChainFunction, v vnet.Function) {
	f.Service, f.Port, f.Patience = v.Service, v.Port, int64(v.Patience)
	if v.Publish != 0 {
		f.Publish, f.Target = v.Publish, v.Port
	}
	if chain, ok := n.firstThrough(f.Name); ok {
		f.Asker = n.address(chain.From)
		if chain.Match.Protocol == vnet.ProtocolUDP { // whose ports take no connections
			f.Port = 0
		}
	}
	for _, link := range n.ownLinks(f.Name) {
		if numbers := n.lease.VNIs[link.Name]; len(numbers) > 0 {
			node := link.Ends[1]
			f.Backends = append(f.Backends, ChainBackend{Node: node, Address: n.address(node), Path: uint32(numbers[0]), Interface: n.chainPort(link, 0).Interface})
		}
	}
}

// firstThrough is the first chain that leads through a function.
func (n *network) firstThrough(function string) (vnet.Chain, bool) {
	chains := n.lease.Request.Chains
	i := slices.IndexFunc(chains, func(c vnet.Chain) bool { return slices.Contains(c.Via, function) })
	if i < 0 {
		return vnet.Chain{}, false
	}
	return chains[i], true
}

// asks leads what asks the nodes of a balancer whether they live to them, as packets of
// its chains, and what they answer back to who asks. Rules for that come before those
// of chains.
func (c *Compiler) asks(p *chainPlans, node vnet.VirtualNode) error {
	net := p.net
	chain, ok := net.firstThrough(node.Name)
	if !ok || !node.IsBalancer() {
		return nil
	}
	here := net.lease.Mapping.Nodes[node.Name]
	f := net.chainFunction(node.Name)
	for i, link := range net.ownLinks(node.Name) {
		if i >= len(f.Backends) {
			return fmt.Errorf("link %s has no identifier", link.Name)
		}
		to := f.Backends[i]
		at := net.lease.Mapping.Nodes[to.Node]
		device := VxLink{Index: net.index[link.Name]}.Device(0)
		p.take(here, device, ChainRule{Match: ChainMatch{Protocol: vnet.ProtocolTCP, Dst: single(to.Address)}, Path: to.Path, Index: AskIndex})
		ask := chainWay{Chain: vnet.Chain{From: chain.From, To: to.Node, Transport: chain.Transport, Compat: chain.Compat}}
		if err := c.carry(p, link, ask, to.Path, AskIndex); err != nil {
			return err
		}
		if err := p.leave(at, ask, to.Path, AskIndex); err != nil {
			return err
		}
		answer := ChainMatch{Protocol: vnet.ProtocolTCP, Src: single(to.Address), Dst: single(f.Asker), DstPorts: [2]uint16{AskPort, AskPort}}
		for _, device := range net.nodeDevices(to.Node) {
			p.take(at, device, ChainRule{Match: answer, Path: to.Path, Index: answerIndex})
		}
		back := chainWay{Chain: vnet.Chain{Transport: chain.Transport, Compat: chain.Compat}, direction: vnet.Reverse}
		if err := c.carry(p, link, back, to.Path, answerIndex); err != nil {
			return err
		}
		host := p.at(here)
		host.Hops = append(host.Hops, ChainHop{Path: to.Path, Index: answerIndex, Back: true, Egress: device, Hardware: net.chainPort(link, 0).Hardware().String()})
	}
	return nil
}

// spread leads the packets of a way that come to its balancer to each of the nodes. To
// the chain's end they have the rate of its last segment, to others that of the
// balancer's link there.
func (c *Compiler) spread(p *chainPlans, way chainWay, balancer string, segment vnet.VirtualLink) error {
	net := p.net
	here := net.lease.Mapping.Nodes[balancer]
	place, err := net.balancedPlace(way.Name, balancer)
	if err != nil {
		return err
	}
	hops := p.at(here).Hops
	hops[len(hops)-1].Below = AskIndex - place
	for _, link := range net.ownLinks(balancer) {
		numbers := net.lease.VNIs[link.Name]
		if len(numbers) == 0 {
			return fmt.Errorf("link %s has no identifier", link.Name)
		}
		path, node := uint32(numbers[0]), link.Ends[1]
		by := link
		if node == way.To {
			by = way.links[len(way.links)-1]
		}
		if err := c.carry(p, by, way, path, place); err != nil {
			return err
		}
		one := way
		one.To = node
		if err := p.leave(net.lease.Mapping.Nodes[node], one, path, place); err != nil {
			return err
		}
		p.name(here, ChainPlace{path, place}, node)
	}
	return nil
}

// gather leads what the nodes of a balancer answer to it, where it goes on as what the
// chain's end answers.
func (c *Compiler) gather(p *chainPlans, way chainWay, balancer string, on ChainPlace) error {
	net := p.net
	here := net.lease.Mapping.Nodes[balancer]
	place, err := net.balancedPlace(way.Name, balancer)
	if err != nil {
		return err
	}
	place--
	for _, link := range net.ownLinks(balancer) {
		node, numbers := link.Ends[1], net.lease.VNIs[link.Name]
		if node == way.From { // from which the chain takes them
			continue
		}
		path, at, one := uint32(numbers[0]), net.lease.Mapping.Nodes[node], way
		one.From = node
		p.enter(at, one, path, place)
		if err := c.carry(p, link, way, path, place); err != nil {
			return err
		}
		host := p.at(here)
		host.Hops = append(host.Hops, ChainHop{Path: path, Index: place, Chain: way.Name, Back: true, Jump: &on})
		p.name(here, ChainPlace{path, place}, node)
	}
	return nil
}

// name says of a host's hop to which node of a balancer it leads.
func (p *chainPlans) name(at vnet.HostID, place ChainPlace, node string) {
	hops := p.at(at).Hops
	for i, h := range hops {
		if h.Path == place.Path && h.Index == place.Index {
			hops[i].Backend = node
		}
	}
}

// balancedPlace is the index of a chain's packets to nodes of its balancer; those from
// them have the next. It is another one for each generation of the chain, and does not
// depend on chains that come and go, unless two want the same.
func (n *network) balancedPlace(chain, balancer string) (uint8, error) {
	taken := make(map[int]bool)
	for _, c := range n.lease.Request.Chains {
		if !slices.Contains(c.Via, balancer) {
			continue
		}
		if len(taken) == balancedPlaces-1 {
			break
		}
		links := n.chainLinks(c.Name)
		if len(links) == 0 {
			continue
		}
		k := n.index[links[len(links)-1].Name]
		if numbers := n.lease.Numbers; numbers != nil {
			k += 9 * numbers.Chains[c.Name]
		}
		for k %= balancedPlaces - 1; taken[k]; k = (k + 1) % (balancedPlaces - 1) {
		}
		taken[k] = true
		if c.Name == chain {
			return balancedIndex - 2*uint8(k), nil
		}
	}
	return 0, fmt.Errorf("more than %d chains lead through %s", balancedPlaces-1, balancer)
}
