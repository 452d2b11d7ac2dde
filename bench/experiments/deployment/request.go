package main

import (
	"fmt"
	"strings"
)

// host alternates between hosts if there are two, and is open with none.
func host(i int, two bool) string {
	if two {
		return fmt.Sprintf(", host: h%d", 1+i%2)
	}
	return ""
}

// nodes lists n1 to nN.
func nodes(b *strings.Builder, n int, two bool) {
	b.WriteString("nodes:\n")
	for i := range n {
		fmt.Fprintf(b, "  - {name: n%d, cpu: 0.01, memory: 32MiB%s}\n", i+1, host(i, two))
	}
}

// star is n nodes, each with a link to one router.
func star(name string, n int, two bool, rate string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "network: %s\n", name)
	nodes(&b, n, two)
	fmt.Fprintf(&b, "routers:\n  - {name: hub, cpu: 0.1, memory: 64MiB%s}\nlinks:\n", host(0, two))
	for i := range n {
		fmt.Fprintf(&b, "  - {name: l%d, ends: [n%d, hub]%s}\n", i+1, i+1, rate)
	}
	return b.String()
}

// ring is n nodes and n links, each node with two neighbours.
func ring(name string, n int, two bool, rate string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "network: %s\n", name)
	nodes(&b, n, two)
	b.WriteString("links:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: l%d, ends: [n%d, n%d]%s}\n", i+1, i+1, (i+1)%n+1, rate)
	}
	return b.String()
}

// pairs is n/2 pairs of nodes with two parallel links each.
func pairs(name string, n int, two bool, rate string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "network: %s\n", name)
	nodes(&b, n, two)
	b.WriteString("links:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: l%d, ends: [n%d, n%d]%s}\n", i+1, i/2*2+1, i/2*2+2, rate)
	}
	return b.String()
}
