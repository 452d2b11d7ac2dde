// Package graph draws leases for people: the virtual network, the hosts it is
// mapped to, and the substrate paths of its links, in the languages of
// Graphviz (DOT) and Mermaid.
package graph

import (
	"fmt"
	"strings"

	"sublet/vnet"
)

// picture is what DOT and Mermaid both draw: the running stage's network, and
// the hosts it is mapped to with the substrate paths between them.
type picture struct {
	title string
	nodes []drawnNode
	links []drawnLink
	hosts []vnet.HostID // that carry a node, in order of appearance
}

// drawnKind chooses a node's shape.
type drawnKind int

const (
	drawnEnd drawnKind = iota
	drawnRouter
	drawnSwitch
	drawnFunction
)

// kindAt is the kind of element i of Topology.Placed.
func kindAt(t vnet.Topology, i int) drawnKind {
	switch {
	case i < len(t.Nodes) && t.Nodes[i].IsFunction():
		return drawnFunction
	case i < len(t.Nodes):
		return drawnEnd
	case i < len(t.Nodes)+len(t.Routers):
		return drawnRouter
	}
	return drawnSwitch
}

type drawnNode struct {
	id    string // safe in both languages
	label string
	kind  drawnKind
	host  int // index in hosts, -1 when not mapped
}

type drawnLink struct {
	from, to int // indexes in nodes
	label    string
	path     string // "" when not mapped or inside one host
	chained  bool   // a segment of a chain, which leads one way
}

// draw collects the picture of a lease.
func draw(l vnet.Lease) picture {
	top := l.Topology()
	p := picture{title: strings.TrimPrefix(l.ID().String(), "/")} // the operator has no name
	index := make(map[string]int)
	hosts := make(map[vnet.HostID]int)
	for i, n := range top.Placed() {
		host := -1
		if name, ok := l.Mapping.Nodes[n.Name]; ok {
			if _, seen := hosts[name]; !seen {
				hosts[name] = len(p.hosts)
				p.hosts = append(p.hosts, name)
			}
			host = hosts[name]
		}
		index[n.Name] = i
		p.nodes = append(p.nodes, drawnNode{id: fmt.Sprintf("n%d", i), label: nodeLabel(l, n), kind: kindAt(top, i), host: host})
	}
	for _, link := range top.Links {
		p.links = append(p.links, drawnLink{
			from: index[link.Ends[0]], to: index[link.Ends[1]],
			label: linkLabel(l, link), path: pathLabel(l, link), chained: link.Chain != "",
		})
	}
	return p
}

// crosses says whether a link has a path between two known hosts.
func (p picture) crosses(l drawnLink) bool {
	return l.path != "" && p.nodes[l.from].host >= 0 && p.nodes[l.to].host >= 0
}

// nodeLabel is the name, and the address if it is known.
func nodeLabel(l vnet.Lease, n vnet.VirtualNode) string {
	if n.IsFunction() {
		return n.Name + "\n" + string(n.Function.Kind)
	}
	address := n.Address
	if given, ok := l.Addresses[n.Name]; ok {
		address = given
	}
	if !address.IsValid() {
		return n.Name
	}
	return n.Name + "\n" + address.String()
}

// linkLabel is the name, then the rates of both directions.
func linkLabel(l vnet.Lease, link vnet.VirtualLink) string {
	rates := l.Rates[link.Name]
	words := [2]string{link.Bandwidth[vnet.Forward].String(), link.Bandwidth[vnet.Reverse].String()}
	for d := range words {
		if rates[d] > 0 { // best effort has none
			words[d] += fmt.Sprintf(" (now %s)", rates[d])
		}
	}
	if f := link.Sender(); f != "" {
		return f + " to " + link.Ends[1] + "\n" + words[vnet.Forward]
	}
	if link.Chain != "" {
		return "chain " + link.Chain + "\n" + words[vnet.Forward]
	}
	text := link.Name + "\n" + words[vnet.Forward]
	if link.Down {
		text = link.Name + " (down)\n" + words[vnet.Forward]
	}
	if words[vnet.Reverse] != words[vnet.Forward] {
		text += "\nback " + words[vnet.Reverse]
	}
	addresses := link.Addresses
	if given, ok := l.LinkAddresses[link.Name]; ok {
		addresses = given
	}
	for end, list := range addresses {
		for _, a := range list {
			text += "\n" + link.Ends[end] + " " + a.String()
		}
	}
	if link.Latency > 0 {
		text += "\nwithin " + vnet.FormatDuration(link.Latency)
	}
	return text
}

func pathLabel(l vnet.Lease, link vnet.VirtualLink) string {
	var ways []string
	for _, p := range l.Mapping.Paths(link.Name) {
		if len(p.Path) > 0 {
			ways = append(ways, strings.Join(p.Path, ", "))
		}
	}
	if len(ways) == 0 {
		return ""
	}
	return link.Name + "\nvia " + strings.Join(ways, "\nand ")
}
