package vnet

import (
	"fmt"
	"slices"
	"strings"
)

// Encapsulation is a tunnel protocol; the empty one is VXLAN.
type Encapsulation string

// Protocols of tunnels. GRE, GUE and IPIP tell tunnels apart by the sender
// only, GRETAP too: one between two addresses.
const (
	VXLAN  Encapsulation = "vxlan"  // RFC 7348
	NSH    Encapsulation = "nsh"    // RFC 8300 over VXLAN-GPE; the path's number is the VNI, its index 255
	Geneve Encapsulation = "geneve" // RFC 8926
	NVGRE  Encapsulation = "nvgre"  // RFC 7637
	GRETAP Encapsulation = "gretap" // RFC 2784 with Ethernet inside
	GRE    Encapsulation = "gre"    // RFC 2784
	IPIP   Encapsulation = "ipip"   // RFC 2003, RFC 4213
	GUE    Encapsulation = "gue"    // draft-ietf-intarea-gue-09, variant 0
	LISP   Encapsulation = "lisp"   // RFC 9300; VNI is the instance

	// KernelVXLAN is VXLAN by a device of the kernel's, on a port of its own: the host's
	// stack sees its packets, so the operator's firewall and IPsec do.
	KernelVXLAN Encapsulation = "kernel-vxlan"
)

// LeaseEncapsulations are those that links of leases can have: they carry
// Ethernet frames and a number that tells tunnels apart.
var LeaseEncapsulations = []Encapsulation{VXLAN, Geneve, NVGRE, KernelVXLAN}

// unfit says of other protocols why links of leases cannot have them.
var unfit = map[Encapsulation]string{
	NSH:    "service chains travel by it",
	GRETAP: "it has no number that tells leases apart",
	GRE:    "it carries IP packets only, and leases have Ethernet frames",
	IPIP:   "it carries IP packets only, and leases have Ethernet frames",
	GUE:    "it carries IP packets only, and leases have Ethernet frames",
	LISP:   "it carries IP packets only, and leases have Ethernet frames",
}

// Headers is what it adds to a tenant's frame over IPv4, for those that leases can
// have: Ethernet 14, IPv4 20, and UDP 8 with VXLAN or Geneve 8, or GRE with a key 8.
// The tenant's own Ethernet header travels inside, so an inner packet is smaller than
// the wire's MTU by as much.
func (e Encapsulation) Headers() int {
	if e == NVGRE {
		return 42
	}
	return 50
}

// OverUDP says whether its packets have a UDP header, of those that leases can have.
func (e Encapsulation) OverUDP() bool { return e != NVGRE }

// TakesRelays says whether relay lists can go in its packets, of those that leases can
// have: behind a UDP header that is written where lists are, not later by the host's stack.
func (e Encapsulation) TakesRelays() bool { return e.OverUDP() && e != KernelVXLAN }

func (e Encapsulation) check(path string) error {
	if e == "" || slices.Contains(LeaseEncapsulations, e) {
		return nil
	}
	choices := make([]string, len(LeaseEncapsulations))
	for i, choice := range LeaseEncapsulations {
		choices[i] = string(choice)
	}
	why := fmt.Sprintf("%q is no encapsulation", e)
	if reason := unfit[e]; reason != "" {
		why = fmt.Sprintf("leases cannot have %s, since %s", e, reason)
	}
	return fieldf(path, "%s: choose %s", why, strings.Join(choices, ", "))
}

// checkEncapsulations sees to it that every tunnel has one encapsulation on its whole
// way, which its switches can do with: so links that meet at a switch have the same.
func (s Substrate) checkEncapsulations() error {
	first := make(map[string]SubstrateLink) // at a switch
	for i, l := range s.Links {
		path := at("links", i) + ".encapsulation"
		if err := l.Encapsulation.check(path); err != nil {
			return err
		}
		for _, end := range l.Ends {
			if !slices.Contains(s.Switches, end) {
				continue
			}
			other, seen := first[end]
			if seen && other.Encapsulates() != l.Encapsulates() {
				return fieldf(path, "%s meets %s of link %q at switch %q, and a tunnel has one: state the same for all links of the switch", l.Encapsulates(), other.Encapsulates(), other.Name, end)
			}
			first[end] = l
			if s.Relays[end].IsValid() && !l.Encapsulates().TakesRelays() {
				return fieldf(path, "%s cannot have relay lists, which go behind a UDP header that Sublet writes: choose vxlan or geneve, or leave relays out", l.Encapsulation)
			}
			if _, speaks := s.OpenFlowOf(end); speaks && l.Encapsulates() != VXLAN {
				return fieldf(path, "switch %q, which speaks OpenFlow, has entries for vxlan alone: leave %s out", end, l.Encapsulation)
			}
		}
	}
	return nil
}

// Encapsulates is the encapsulation of tunnels that take the link.
func (l SubstrateLink) Encapsulates() Encapsulation {
	if l.Encapsulation == "" {
		return VXLAN
	}
	return l.Encapsulation
}
