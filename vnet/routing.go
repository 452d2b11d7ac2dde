package vnet

import (
	"slices"
)

// Protocols lists all, as a request may state them.
var Protocols = []Protocol{ProtocolStatic, ProtocolOSPF, ProtocolOSPF6, ProtocolBGP, ProtocolISIS, ProtocolNone}

// Speaks is the protocol by which a router tells others of addresses of a
// family, so that neighbours that speak the same find ways; "": none.
func (p Protocol) Speaks(is4 bool) Protocol {
	switch {
	case p == ProtocolOSPF && is4, p == ProtocolOSPF6 && is4:
		return ProtocolOSPF
	case p == ProtocolOSPF6, p == ProtocolBGP, p == ProtocolISIS:
		return p
	}
	return ""
}

// Bounds of what routers are told: a cost of OSPF has 16 bits (RFC 2328; of
// IS-IS 24, RFC 5305), a number of an autonomous system 32 (RFC 6793), without the last.
const (
	MaxCost = 65535
	MaxAS   = 1<<32 - 2
)

// checkRouting checks what a node says of its protocol.
func (n VirtualNode) checkRouting(path, kind string) error {
	switch {
	case kind != "router" && n.Protocol != "":
		return fieldf(path+".protocol", "only routers have a protocol: leave it out, or write the node under routers")
	case kind == "router" && !slices.Contains(Protocols, n.Protocol):
		return fieldf(path+".protocol", "%q is not a routing protocol: use static, ospf, ospf6, bgp, isis or none", string(n.Protocol))
	case n.AS != 0 && n.Protocol != ProtocolBGP:
		return fieldf(path+".as", "only routers with protocol bgp are in an autonomous system: leave it out, or state protocol: bgp")
	case n.Protocol == ProtocolBGP && (n.AS == 0 || n.AS > MaxAS):
		return fieldf(path+".as", "%d is not between 1 and %d: state the router's autonomous system, such as 65001", n.AS, uint32(MaxAS))
	case n.FRR != "" && n.Protocol == ProtocolStatic:
		return fieldf(path+".frr", "routes are computed: state protocol too, none if all that FRR does is here")
	case n.FRR != "" && kind != "router":
		return fieldf(path+".frr", "only routers have daemons of FRR: leave it out, or write the node under routers")
	case n.FRR != "" && n.Kind != "":
		return fieldf(path+".frr", "a machine has daemons of its own: write the file under files")
	}
	if err := n.checkNeighbors(path + ".neighbors"); err != nil {
		return err
	}
	return checkFRR(path+".frr", n.FRR)
}

// linkRouting checks what a link says to the protocols of its ends.
func (c *checker) linkRouting(path string, l VirtualLink) error {
	speaks := func(p Protocol) bool {
		return slices.ContainsFunc(l.Ends[:], func(end string) bool { return c.nodes[end].Protocol.Speaks(true) == p })
	}
	ospf, isis := speaks(ProtocolOSPF), speaks(ProtocolISIS)
	switch {
	case l.Area != 0 && !ospf:
		return fieldf(path+".area", "no end is a router with protocol ospf or ospf6: leave it out")
	case l.Cost != 0 && !ospf && !isis:
		return fieldf(path+".cost", "no end is a router with protocol ospf, ospf6 or isis: leave it out")
	case l.Cost < 0 || l.Cost > MaxCost:
		return fieldf(path+".cost", "%d is not between 1 and %d: leave it out for the protocol's own", l.Cost, MaxCost)
	}
	return nil
}
