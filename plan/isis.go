package plan

import (
	"fmt"
	"net/netip"
	"strings"
)

// isisd is IS-IS for both families, in one area of level 2. How often a router
// may tell what it knows is said before its name: isisd would hold back for 30 s
// what it learns right after it has one. Hellos are not padded, since links carry
// their MTU anyway, and packets fit into the smallest link (lspMTU).
func (n *network) isisd(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "hostname %s\nrouter isis %s\n is-type level-2-only\n lsp-gen-interval 1\n spf-interval 1\n spf-delay-ietf init-delay 10 short-delay 50 long-delay 200 holddown 1000 time-to-learn 500\n lsp-mtu %d\n net %s\n", name, isisTag, lspMTU, isisName(n.address(name)))
	b.WriteString(" redistribute ipv4 connected level-2\n redistribute ipv6 connected level-2\n")
	for _, i := range n.sortedPorts(name) {
		fmt.Fprintf(&b, "interface %[1]s\n ip router isis %[2]s\n ipv6 router isis %[2]s\n", i.device, isisTag)
		if n.peers(i, name, true) {
			b.WriteString(" isis network point-to-point\n isis hello-interval 1\n isis hello-multiplier 4\n no isis hello padding\n")
		} else {
			b.WriteString(" isis passive\n")
		}
		if l := n.linkAt(i); l.Cost != 0 {
			fmt.Fprintf(&b, " isis metric %d\n", l.Cost)
		}
	}
	return b.String()
}

const (
	isisTag = "net" // of the instance: it has a meaning inside the router only
	// lspMTU leaves room on links of IPv6's least MTU, 1280, for the three bytes
	// of LLC that frames of IS-IS have.
	lspMTU = 1200
)

// isisName is a router's network entity title: its address in decimal digits, as
// is usual, in a private area (AFI 49).
func isisName(a netip.Addr) string {
	b := a.As4()
	d := fmt.Sprintf("%03d%03d%03d%03d", b[0], b[1], b[2], b[3])
	return fmt.Sprintf("49.0001.%s.%s.%s.00", d[:4], d[4:8], d[8:])
}
