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
//
// A router with daemons cannot speak to its neighbours from two places. Its new place
// gets the routes that the old one has learned (Copies); then the daemons end in the old
// place, and begin in the new one. The neighbours forget it meanwhile and learn it anew,
// and so do those behind them; all of them keep the routes that they had until then
// behind those that they learn (plan.VxRouter.Keep).
//
// An OpenFlow switch in its new place gets what the old one was told and has counted. It
// reaches its controllers once their links lead to it.

// gentle says whether what a move takes elsewhere can be there twice meanwhile, and so
// can some nodes.
func gentle(r vnet.Request, from, to vnet.Mapping, nodes ...string) bool {
	can := doubles(r)
	for _, name := range nodes {
		can[name] = true
	}
	for _, n := range r.Union().Placed() {
		if from.Nodes[n.Name] != to.Nodes[n.Name] && !can[n.Name] {
			return false
		}
	}
	return len(r.Chains) == 0
}

// doubles are the routers and switches of a request that can be there twice. What
// is bound to an address or interface of its host cannot, nor can what is in a network with
// chains.
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
		can[s.Name] = s.Access == ""
	}
	return can
}

// doubled says whether a router can be there twice.
func doubled(n vnet.VirtualNode) bool {
	return n.NAT == "" && n.Join == "" && n.Device == ""
}

// told are what a move takes elsewhere with what it has learned or was told: routers with
// daemons, and OpenFlow switches.
func told(r vnet.Request, from, to vnet.Mapping) []string {
	names := learners(r, from, to)
	for _, s := range r.Union().Switches {
		if s.Kind == vnet.SwitchOpenFlow && from.Nodes[s.Name] != to.Nodes[s.Name] {
			names = append(names, s.Name)
		}
	}
	return names
}

// learners are the routers with daemons that a move takes elsewhere.
func learners(r vnet.Request, from, to vnet.Mapping) (names []string) {
	for _, n := range r.Union().Routers {
		learns := n.FRR != "" || n.Protocol.Speaks(true) != "" || n.Protocol.Speaks(false) != ""
		if learns && from.Nodes[n.Name] != to.Nodes[n.Name] {
			names = append(names, n.Name)
		}
	}
	return names
}

// handOver has routers keep what they have learned while one with daemons moves, whose
// daemons run in one place.
func (e *entry) handOver() {
	if !e.moving() || e.Move.Form != nil {
		return
	}
	silent := make(map[vnet.HostID]map[string]bool)
	moved := learners(e.Request, e.Move.From, e.Mapping)
	for _, name := range moved {
		host := e.Mapping.Nodes[name]
		if e.Move.Phase == vnet.MoveSwitches {
			host = e.Move.From.Nodes[name]
		}
		if silent[host] == nil {
			silent[host] = make(map[string]bool)
		}
		silent[host][plan.Namespace(e.ID(), name)] = true
	}
	for host, items := range e.parts {
		for i, item := range items {
			r, ok := item.(plan.VxRouter)
			if !ok || !r.Learns() || len(moved) == 0 {
				continue
			}
			if r.Keep = true; silent[host][r.Key()] {
				r = r.Silent()
			}
			items[i] = r
		}
	}
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
