package graph

import (
	"fmt"
	"strings"

	"sublet/vnet"
)

// DOT draws a lease in Graphviz's language: the virtual network, the hosts it
// is mapped to, and between hosts the substrate paths of its links.
func DOT(l vnet.Lease) string {
	p := draw(l)
	var b strings.Builder
	fmt.Fprintf(&b, "graph %s {\n  compound=true;\n", quoteDOT(p.title))
	fmt.Fprintf(&b, "  subgraph cluster_network {\n    label=%s;\n", quoteDOT(p.title))
	for _, n := range p.nodes {
		shape := [...]string{drawnEnd: "ellipse", drawnRouter: "box", drawnSwitch: "diamond", drawnFunction: "hexagon"}[n.kind]
		fmt.Fprintf(&b, "    %s [label=%s, shape=%s];\n", n.id, quoteDOT(n.label), shape)
	}
	for _, l := range p.links {
		how := ""
		if l.chained {
			how = ", dir=forward, style=bold"
		}
		fmt.Fprintf(&b, "    %s -- %s [label=%s%s];\n", p.nodes[l.from].id, p.nodes[l.to].id, quoteDOT(l.label), how)
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
