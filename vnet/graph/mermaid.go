package graph

import (
	"fmt"
	"strings"

	"sublet/vnet"
)

// Mermaid draws a lease in Mermaid's flowchart language, with the same
// content as DOT.
func Mermaid(l vnet.Lease) string {
	p := draw(l)
	var b strings.Builder
	fmt.Fprintf(&b, "flowchart LR\n  subgraph network[%s]\n", quoteMermaid(p.title))
	for _, n := range p.nodes {
		around := [...][2]string{drawnEnd: {"(", ")"}, drawnRouter: {"[", "]"}, drawnSwitch: {"{", "}"}, drawnFunction: {"{{", "}}"}}[n.kind]
		fmt.Fprintf(&b, "    %s%s%s%s\n", n.id, around[0], quoteMermaid(n.label), around[1])
	}
	for _, l := range p.links {
		line := "---"
		if l.chained {
			line = "==>"
		}
		fmt.Fprintf(&b, "    %s %s|%s| %s\n", p.nodes[l.from].id, line, quoteMermaid(l.label), p.nodes[l.to].id)
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
