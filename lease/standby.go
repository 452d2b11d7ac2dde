package lease

import (
	"maps"

	"sublet/plan"
	"sublet/vnet"
)

// Routers and switches of a running network move make-before-break, as links do
// (move.go), in the order of Wang et al., Virtual Routers on the Move. While
// a move prepares, the new one is built beside the old one, with links to the same
// neighbours, who take what comes by these and send nothing. Then each neighbour sends
// by them and still takes what comes by the former ones, so that it does not matter
// which of them is first. Then the old one goes.

// gentle says whether what a move takes elsewhere can be there twice meanwhile.
func gentle(r vnet.Request, from, to vnet.Mapping) bool {
	can := doubles(r)
	for _, n := range r.Union().Placed() {
		if from.Nodes[n.Name] != to.Nodes[n.Name] && !can[n.Name] {
			return false
		}
	}
	return len(r.Chains) == 0
}

// doubles are the routers and switches of a request that can be there twice. What
// is bound to an address or interface of its host, and what speaks to others in its
// own name, cannot; nor can what chains lead through.
func doubles(r vnet.Request) map[string]bool {
	can := make(map[string]bool)
	if len(r.Chains) > 0 {
		return can
	}
	union := r.Union()
	for _, n := range union.Routers {
		can[n.Name] = doubled(n)
	}
	for _, s := range union.Switches {
		can[s.Name] = s.Kind != vnet.SwitchOpenFlow && s.Access == ""
	}
	return can
}

// doubled says whether a router can be there twice.
func doubled(n vnet.VirtualNode) bool {
	return n.NAT == "" && n.Join == "" && n.Device == "" && n.FRR == "" && n.Protocol.Speaks(true) == "" && n.Protocol.Speaks(false) == ""
}

// turned gives the ends of links that change other places than they have, but for
// ports of nodes that stay.
func turned(from, to vnet.Mapping, changed []vnet.VirtualLink) map[string][2]vnet.EndPlace {
	places := maps.Clone(from.Places)
	if places == nil {
		places = make(map[string][2]vnet.EndPlace)
	}
	for _, l := range changed {
		both := from.Places[l.Name]
		for end, node := range l.Ends {
			next := 0
			for next == both[end].Port || next == both[end].Tunnel {
				next++
			}
			both[end].Tunnel = next
			if from.Nodes[node] != to.Nodes[node] {
				both[end].Port = next
			}
		}
		places[l.Name] = both
	}
	return places
}

// alongside adds to what a host has of a moving lease what it has of it besides: links
// that differ stand by, and only what carries answers whether it does.
func alongside(items, more []plan.Item) []plan.Item {
	had := make(map[string]plan.VxLink)
	for _, item := range items {
		if l, ok := item.(plan.VxLink); ok {
			had[l.Key()] = l
		}
	}
	for _, item := range more {
		l, isLink := item.(plan.VxLink)
		is, there := had[item.Key()]
		switch {
		case item.Kind() == plan.KindReach:
		case isLink && there:
			if by, ok := l.StandingBy(is); ok {
				items = append(items, by)
			}
		default:
			items = merged(items, []plan.Item{item})
		}
	}
	return items
}
