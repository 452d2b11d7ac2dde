package plan

import (
	"fmt"
	"slices"

	"sublet/vnet"
)

// watch says at the hop that was added last, of a program, what becomes of the packets
// of a way while the program returns none.
func (c *Compiler) watch(p *chainPlans, way chainWay, node string) error {
	net := p.net
	if net.functions[node].Kind != vnet.FunctionProgram || way.OnFailure == "" {
		return nil
	}
	at := net.lease.Mapping.Nodes[node]
	hops := p.at(at).Hops
	hop := &hops[len(hops)-1]
	hop.OnFailure = way.OnFailure
	if way.OnFailure != vnet.FailureReroute {
		return nil
	}
	past, err := net.pastPlace(way, node)
	if err != nil {
		return err
	}
	hop.Instead = &past
	return c.past(p, way, node, past, ChainPlace{Path: hop.Path, Index: hop.Index - 1})
}

// hopsPast is how many indexes a chain has on its way to a standby and back, in both
// directions.
const hopsPast = 4

// pastPlace is where packets of a way begin to go past a program. The path is that of
// the link to its standby, and each way through the program has indexes of its own.
func (n *network) pastPlace(way chainWay, node string) (ChainPlace, error) {
	links := n.ownLinks(node)
	if len(links) != 2 || len(n.lease.VNIs[links[0].Name]) == 0 {
		return ChainPlace{}, fmt.Errorf("function %s has %d links to and from its standby", node, len(links))
	}
	k := 0
	for _, other := range n.lease.Request.Chains {
		if other.Name == way.Name {
			break
		}
		if other.OnFailure == vnet.FailureReroute && slices.Contains(other.Via, node) {
			k++
		}
	}
	used := hopsPast * k
	if way.back() {
		used += hopsPast / 2
	}
	if used > firstIndex-hopsPast {
		return ChainPlace{}, fmt.Errorf("%d chains through %s go to its standby, which are too many", k+1, node)
	}
	return ChainPlace{Path: uint32(n.lease.VNIs[links[0].Name][0]), Index: firstIndex - uint8(used)}, nil
}

// past leads packets of a way to the standby of a program, from which they go on behind
// the program.
func (c *Compiler) past(p *chainPlans, way chainWay, node string, begin, end ChainPlace) error {
	net := p.net
	standby, links := net.functions[node].Standby, net.ownLinks(node)
	if way.back() {
		slices.Reverse(links)
	}
	if err := c.carry(p, links[0], way, begin.Path, begin.Index); err != nil {
		return err
	}
	there := net.lease.Mapping.Nodes[standby]
	p.pass(there, way, begin.Path, begin.Index, net.chainFunction(standby))
	hops := p.at(there).Hops
	hops[len(hops)-1].OnFailure = vnet.FailureDrop
	if err := c.carry(p, links[1], way, begin.Path, begin.Index-1); err != nil {
		return err
	}
	home := p.at(net.lease.Mapping.Nodes[node])
	home.Hops = append(home.Hops, ChainHop{Path: begin.Path, Index: begin.Index - 1, Chain: way.Name, Back: way.back(), Jump: &end})
	return nil
}

// ownLinks are those of a function beside the segments of chains, in order.
func (n *network) ownLinks(function string) (links []vnet.VirtualLink) {
	for _, l := range n.chained {
		if l.Sender() == function {
			links = append(links, l)
		}
	}
	return links
}
