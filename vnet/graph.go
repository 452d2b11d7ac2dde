package vnet

import (
	"fmt"
	"strings"
)

// picture is what DOT and Mermaid both draw: the running stage's network, and
// the hosts it is mapped to with the substrate paths between them.
type picture struct {
	title string
	nodes []drawnNode
	links []drawnLink
	hosts []HostID // that carry a node, in order of appearance
}

type drawnNode struct {
	id     string // safe in both languages
	label  string
	router bool
	host   int // index in hosts, -1 when not mapped
}

type drawnLink struct {
	from, to int // indexes in nodes
	label    string
	path     string // "" when not mapped or inside one host
}

// draw collects the picture of a lease.
func draw(l Lease) picture {
	top := l.Topology()
	p := picture{title: l.ID().String()}
	index := make(map[string]int)
	hosts := make(map[HostID]int)
	for i, n := range top.All() {
		host := -1
		if name, ok := l.Mapping.Nodes[n.Name]; ok {
			if _, seen := hosts[name]; !seen {
				hosts[name] = len(p.hosts)
				p.hosts = append(p.hosts, name)
			}
			host = hosts[name]
		}
		index[n.Name] = i
		p.nodes = append(p.nodes, drawnNode{id: fmt.Sprintf("n%d", i), label: l.nodeLabel(n), router: i >= len(top.Nodes), host: host})
	}
	for _, link := range top.Links {
		p.links = append(p.links, drawnLink{
			from: index[link.Ends[0]], to: index[link.Ends[1]],
			label: l.linkLabel(link), path: l.pathLabel(link),
		})
	}
	return p
}

// crosses says whether a link has a path between two known hosts.
func (p picture) crosses(l drawnLink) bool {
	return l.path != "" && p.nodes[l.from].host >= 0 && p.nodes[l.to].host >= 0
}

// nodeLabel is the name, and the address if it is known.
func (l Lease) nodeLabel(n VirtualNode) string {
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
func (l Lease) linkLabel(link VirtualLink) string {
	rates, allocated := l.Rates[link.Name]
	words := [2]string{link.Bandwidth[Forward].String(), link.Bandwidth[Reverse].String()}
	for d := range words {
		if allocated {
			words[d] += fmt.Sprintf(" (now %s)", rates[d])
		}
	}
	text := link.Name + "\n" + words[Forward]
	if words[Reverse] != words[Forward] {
		text += "\nback " + words[Reverse]
	}
	if link.Latency > 0 {
		text += "\nwithin " + FormatDuration(link.Latency)
	}
	return text
}

func (l Lease) pathLabel(link VirtualLink) string {
	path := l.Mapping.Links[link.Name]
	if len(path) == 0 {
		return ""
	}
	return link.Name + "\nvia " + strings.Join(path, ", ")
}

// String says what is asked for, in words: "100Mbit to 500Mbit", "300Mbit",
// "up to 50Mbit", "at least 1Mbit", "best effort".
func (b Bandwidth) String() string {
	switch {
	case b.BestEffort():
		return "best effort"
	case b.Min == b.Max:
		return b.Max.String()
	case b.Max == Unbounded:
		return "at least " + b.Min.String()
	case b.Min == 0:
		return "up to " + b.Max.String()
	}
	return b.Min.String() + " to " + b.Max.String()
}

// DOT draws a lease in Graphviz's language: the virtual network, the hosts it
// is mapped to, and between hosts the substrate paths of its links.
func DOT(l Lease) string {
	p := draw(l)
	var b strings.Builder
	fmt.Fprintf(&b, "graph %s {\n  compound=true;\n", quoteDOT(p.title))
	fmt.Fprintf(&b, "  subgraph cluster_network {\n    label=%s;\n", quoteDOT(p.title))
	for _, n := range p.nodes {
		shape := "ellipse"
		if n.router {
			shape = "box"
		}
		fmt.Fprintf(&b, "    %s [label=%s, shape=%s];\n", n.id, quoteDOT(n.label), shape)
	}
	for _, l := range p.links {
		fmt.Fprintf(&b, "    %s -- %s [label=%s];\n", p.nodes[l.from].id, p.nodes[l.to].id, quoteDOT(l.label))
	}
	b.WriteString("  }\n")
	p.dotMapping(&b)
	b.WriteString("}\n")
	return b.String()
}

func (p picture) dotMapping(b *strings.Builder) {
	if len(p.hosts) == 0 {
		return
	}
	b.WriteString("  subgraph cluster_hosts {\n    label=\"hosts\";\n")
	for i, h := range p.hosts {
		fmt.Fprintf(b, "    h%d [label=%s, shape=box3d];\n", i, quoteDOT(string(h)))
	}
	for _, l := range p.links {
		if p.crosses(l) {
			fmt.Fprintf(b, "    h%d -- h%d [label=%s];\n", p.nodes[l.from].host, p.nodes[l.to].host, quoteDOT(l.path))
		}
	}
	b.WriteString("  }\n")
	for _, n := range p.nodes {
		if n.host >= 0 {
			fmt.Fprintf(b, "  %s -- h%d [style=dashed];\n", n.id, n.host)
		}
	}
}

// quoteDOT makes a double-quoted string of Graphviz.
func quoteDOT(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// Mermaid draws a lease in Mermaid's flowchart language, with the same
// content as DOT.
func Mermaid(l Lease) string {
	p := draw(l)
	var b strings.Builder
	fmt.Fprintf(&b, "flowchart LR\n  subgraph network[%s]\n", quoteMermaid(p.title))
	for _, n := range p.nodes {
		open, end := "(", ")"
		if n.router {
			open, end = "[", "]"
		}
		fmt.Fprintf(&b, "    %s%s%s%s\n", n.id, open, quoteMermaid(n.label), end)
	}
	for _, l := range p.links {
		fmt.Fprintf(&b, "    %s ---|%s| %s\n", p.nodes[l.from].id, quoteMermaid(l.label), p.nodes[l.to].id)
	}
	b.WriteString("  end\n")
	p.mermaidMapping(&b)
	return b.String()
}

func (p picture) mermaidMapping(b *strings.Builder) {
	if len(p.hosts) == 0 {
		return
	}
	b.WriteString("  subgraph hosts[\"hosts\"]\n")
	for i, h := range p.hosts {
		fmt.Fprintf(b, "    h%d[[%s]]\n", i, quoteMermaid(string(h)))
	}
	for _, l := range p.links {
		if p.crosses(l) {
			fmt.Fprintf(b, "    h%d ---|%s| h%d\n", p.nodes[l.from].host, quoteMermaid(l.path), p.nodes[l.to].host)
		}
	}
	b.WriteString("  end\n")
	for _, n := range p.nodes {
		if n.host >= 0 {
			fmt.Fprintf(b, "  %s -.- h%d\n", n.id, n.host)
		}
	}
}

// quoteMermaid makes a quoted label; Mermaid writes odd characters as entities.
func quoteMermaid(s string) string {
	return `"` + strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", "\n", "<br/>").Replace(s) + `"`
}
