package vnet

import (
	"net/netip"
	"slices"
	"time"
)

// FunctionKind says what a function does with packets.
type FunctionKind string

// Kinds of functions. FunctionProgram is what a tenant brings: a program between
// the two interfaces of its node.
const (
	FunctionFirewall FunctionKind = "firewall"
	FunctionLimiter  FunctionKind = "limiter"
	FunctionNAT      FunctionKind = "nat"
	FunctionBalancer FunctionKind = "balancer"
	FunctionMirror   FunctionKind = "mirror"
	// FunctionClassifier moves packets from one chain that leads through it to another.
	FunctionClassifier FunctionKind = "classifier"
	FunctionProgram    FunctionKind = "program"
)

// FunctionKinds lists all.
var FunctionKinds = []FunctionKind{FunctionFirewall, FunctionLimiter, FunctionNAT, FunctionBalancer, FunctionMirror, FunctionClassifier, FunctionProgram}

// Function is what a node does with the packets of the chains that lead through it.
type Function struct {
	Kind   FunctionKind   `json:"kind"`
	Rules  []FunctionRule `json:"rules,omitempty"`    // of a firewall; the first that fits decides
	Rate   Rate           `json:"rate_bps,omitempty"` // the most that it passes; 0: not stated
	Prefix netip.Prefix   `json:"prefix,omitzero"`    // of a NAT: its addresses outside
	To     string         `json:"to,omitempty"`       // of a mirror: the node that gets copies, by an interface of their own
	// Service is the address of a balancer, to which senders send, and Nodes are those
	// that get it. They are asked whether they live: by a connection to Port, 0: whether
	// their kernels answer at all.
	Service netip.Addr `json:"service,omitzero"`
	Nodes   []string   `json:"nodes,omitempty"`
	Port    uint16     `json:"port,omitempty"`
	// Publish is the port of the service in whose place nodes have Port; 0: they have that
	// of each packet.
	Publish uint16    `json:"publish,omitempty"`
	Ports   PortRange `json:"ports,omitzero"` // of a NAT: those that it gives to senders; zero: from 1024 on
	// Standby is the function that a program's packets go to while it returns none, where
	// their chains say reroute.
	Standby string `json:"standby,omitempty"`
	// Patience is for how long a program may return nothing of what comes to it until it
	// is dead, in chains that say what becomes of packets then; 0: DefaultPatience. Of a
	// balancer, for how long a node may answer nothing that it is asked; 0:
	// DefaultHealthPatience.
	Patience time.Duration `json:"patience_ns,omitempty"`
	// NSH says what a program knows of the header of chains (RFC 8300); "": nothing.
	NSH NSHSupport `json:"nsh,omitempty"`
	// Probe is a packet that a program has to pass, by which it is seen to live while it
	// passes nothing else; zero: packets of its chains alone say it.
	Probe Packets     `json:"probe,omitzero"`
	Auto  *Processing `json:"auto,omitempty"` // of a program: its processor time follows the load
	// Absent says that nothing is booked for it, and that nothing runs in it, until a
	// stage brings it. Chains through it are paused meanwhile.
	Absent bool `json:"absent,omitempty"`
}

// NSHSupport is what a program knows of the Network Service Header.
type NSHSupport string

// NSHAware is one that gets frames with the header, and returns them with the next index.
const NSHAware NSHSupport = "aware"

// Bytes that are in front of the packets of a function that knows NSH: an Ethernet header,
// the NSH with metadata of type 1, and a tag within.
const (
	NSHRoom  = 14 + 8 + NSHWords + 4
	NSHWords = 4 * metadataWords
)

// FunctionRule says what a firewall does with packets, or to which chain a classifier
// moves them. What fits no rule passes, or stays on its chain.
type FunctionRule struct {
	Chain string  `json:"chain,omitempty"`
	Allow bool    `json:"allow,omitempty"` // else they are dropped
	Flow  Packets `json:"flow"`
}

// Bounds of functions and chains.
const (
	MaxFunctionRules = 64
	MaxChains        = 256
	MinPatience      = 20 * time.Millisecond
	MaxPatience      = time.Minute
	DefaultPatience  = 150 * time.Millisecond
	MaxBackends      = 64 // nodes of a balancer

	MinHealthPatience     = 400 * time.Millisecond
	DefaultHealthPatience = time.Second
	MaxVia                = 16  // functions of one chain
	MaxHops               = 512 // of all chains: those of a host have 8191 places for all tenants (datapath/nsh)
)

// Packets is a set of packets; what is not stated fits all.
type Packets struct {
	Protocol IPProtocol   `json:"proto,omitempty"`
	Src      netip.Prefix `json:"src,omitzero"`
	Dst      netip.Prefix `json:"dst,omitzero"`
	SrcPort  PortRange    `json:"src_port,omitzero"`
	DstPort  PortRange    `json:"dst_port,omitzero"`
	DSCP     *uint8       `json:"dscp,omitempty"`
	VLAN     *uint16      `json:"vlan,omitempty"` // 0: without a tag
}

// Of DSCP (RFC 2474) and of identifiers of VLANs (IEEE 802.1Q), the largest.
const (
	maxDSCP = 63
	maxVLAN = 4094
)

// IPProtocol is a protocol above IP; "": any.
type IPProtocol string

// Protocols that Packets can state.
const (
	ProtocolTCP  IPProtocol = "tcp"
	ProtocolUDP  IPProtocol = "udp"
	ProtocolICMP IPProtocol = "icmp"
)

// Is6 says whether only packets of IPv6 are in the set.
func (f Packets) Is6() bool {
	return f.Src.IsValid() && f.Src.Addr().Is6() || f.Dst.IsValid() && f.Dst.Addr().Is6()
}

// IsFunction says whether chains lead through the node.
func (n VirtualNode) IsFunction() bool { return n.Function != nil }

// checkFunction checks a node's function by itself.
func (n VirtualNode) checkFunction(path, kind string) error {
	f := n.Function
	switch {
	case f == nil:
		return nil
	case kind != "node":
		return fieldf(path, "a router is no function: write it under functions")
	case !slices.Contains(FunctionKinds, f.Kind):
		return fieldf(path+".kind", "%q is no kind of function: choose firewall, limiter, nat, balancer, classifier or mirror, vm for a machine, or state run or image for one of your own", f.Kind)
	case n.Join != "" || n.Device != "":
		return fieldf(path, "a machine or device that joins has no second interface: leave out join and device")
	case f.Kind == FunctionProgram && len(n.Run) == 0 && n.Image == "":
		return fieldf(path+".run", "is missing: state the program between the interfaces eth0 and eth1, or an image")
	case f.Auto != nil && n.Machine():
		return fieldf(path+".cpu", "auto is for programs, and a machine's kernel takes processor time by itself: state its cores")
	case f.Kind != FunctionProgram && len(n.Stated()) > 0:
		return fieldf(path+"."+n.Stated()[0], "a %s is built in and runs no program: leave it out, or leave out kind", f.Kind)
	case f.Kind != FunctionFirewall && f.Kind != FunctionClassifier && len(f.Rules) > 0:
		return fieldf(path+".rules", "only a firewall or a classifier has rules: leave them out")
	case f.Kind == FunctionClassifier && len(f.Rules) == 0:
		return fieldf(path+".rules", "is missing: state what goes to another chain, such as [{match: {proto: udp}, chain: bulk}]")
	case f.Kind == FunctionFirewall && len(f.Rules) == 0:
		return fieldf(path+".rules", "is missing: state what is denied, such as [{deny: {proto: tcp, dst_port: 23}}]")
	case f.Kind == FunctionLimiter && f.Rate == 0:
		return fieldf(path+".rate", "is missing: state the most that it passes, such as 50Mbit")
	case f.Auto != nil && f.Kind != FunctionProgram:
		return fieldf(path+".cpu", "a %s is built in, and the kernel runs it: leave out cpu", f.Kind)
	case f.Kind != FunctionProgram && f.Standby != "":
		return fieldf(path+".standby", "a %s is built in, and does not end: leave it out", f.Kind)
	case f.Kind != FunctionProgram && f.Kind != FunctionBalancer && f.Patience != 0:
		return fieldf(path+".patience", "a %s is built in, and does not end: leave it out", f.Kind)
	case f.NSH != "" && f.NSH != NSHAware:
		return fieldf(path+".nsh", "%q is not known: write aware for a program that gets packets with the header, or leave it out", f.NSH)
	case f.NSH != "" && f.Kind != FunctionProgram:
		return fieldf(path+".nsh", "a %s is built in, and needs no header: leave it out", f.Kind)
	case f.Kind != FunctionProgram && f.Probed():
		return fieldf(path+".probe", "a %s is built in, and does not end: leave it out", f.Kind)
	case f.Patience != 0 && (f.Patience < f.leastPatience() || f.Patience > MaxPatience):
		return fieldf(path+".patience", "%s is not between %s and %s", FormatDuration(f.Patience), FormatDuration(f.leastPatience()), FormatDuration(MaxPatience))
	case f.Kind != FunctionMirror && f.To != "":
		return fieldf(path+".to", "only a mirror has a node that gets copies: leave it out")
	case f.Kind == FunctionMirror && f.To == "":
		return fieldf(path+".to", "is missing: state the node that gets the copies")
	case f.Kind != FunctionNAT && f.Prefix.IsValid():
		return fieldf(path+".prefix", "only a nat has a prefix: leave it out")
	case f.Kind != FunctionNAT && f.Ports != (PortRange{}):
		return fieldf(path+".ports", "only a nat has ports: leave them out")
	case f.Kind != FunctionBalancer && (f.Service.IsValid() || len(f.Nodes) > 0 || f.Port != 0 || f.Publish != 0):
		return fieldf(path+"."+f.balances(), "only a balancer has it: leave it out")
	case f.Kind == FunctionBalancer:
		if err := f.checkBalancer(path); err != nil {
			return err
		}
	case f.Kind == FunctionNAT:
		if err := f.checkPrefix(path + ".prefix"); err != nil {
			return err
		}
		if f.Ports != (PortRange{}) && (f.Ports.First == 0 || f.Ports.Last < f.Ports.First) {
			return fieldf(path+".ports", "%s is no range of ports: state one such as 20000-29999", f.Ports)
		}
	case len(f.Rules) > MaxFunctionRules:
		return fieldf(path+".rules", "%d rules are more than %d: join some", len(f.Rules), MaxFunctionRules)
	}
	if err := checkRate(path+".rate", f.Rate, true); err != nil {
		return err
	}
	if err := f.checkProbe(path + ".probe"); err != nil {
		return err
	}
	if f.Auto != nil {
		if err := f.Auto.check(path + ".profile"); err != nil {
			return err
		}
	}
	for i, r := range f.Rules {
		where := at(path+".rules", i) + ".deny"
		switch {
		case f.Kind == FunctionClassifier && r.Chain == "":
			return fieldf(at(path+".rules", i)+".chain", "is missing: a classifier neither allows nor denies: state match, and the chain to which that goes")
		case f.Kind != FunctionClassifier && r.Chain != "":
			return fieldf(at(path+".rules", i)+".chain", "only a classifier moves packets to another chain: state allow or deny")
		case f.Kind == FunctionClassifier:
			where = at(path+".rules", i) + ".match"
		case r.Allow:
			where = at(path+".rules", i) + ".allow"
		}
		if err := r.Flow.check(where); err != nil {
			return err
		}
	}
	return nil
}

// checkPrefix checks the addresses of a NAT.
func (f Function) checkPrefix(path string) error {
	p := f.Prefix
	switch {
	case !p.IsValid():
		return fieldf(path, "is missing: state the addresses that senders get, such as 198.51.100.0/28")
	case !p.Addr().Is4() || p.Bits() < 8:
		return fieldf(path, "%s is no network of IPv4 with 8 bits at least: state one such as 198.51.100.0/28", p)
	case p != p.Masked():
		return fieldf(path, "%s has bits behind its prefix: state %s", p, p.Masked())
	case !p.Addr().IsGlobalUnicast():
		return fieldf(path, "%s is not of addresses that stations have: state one such as 198.51.100.0/28", p)
	}
	return nil
}

// check checks what is written at path.
func (f Packets) check(path string) error {
	switch f.Protocol {
	case "", ProtocolTCP, ProtocolUDP, ProtocolICMP:
	default:
		return fieldf(path+".proto", "%q is not known: choose tcp, udp or icmp", f.Protocol)
	}
	if f.DSCP != nil && *f.DSCP > maxDSCP {
		return fieldf(path+".dscp", "%d is no DSCP: choose 0 to %d", *f.DSCP, maxDSCP)
	}
	if f.VLAN != nil && *f.VLAN > maxVLAN {
		return fieldf(path+".vlan", "%d is no VLAN: choose 1 to %d, or 0 for frames without a tag", *f.VLAN, maxVLAN)
	}
	for _, p := range []struct {
		field  string
		prefix netip.Prefix
	}{{".src", f.Src}, {".dst", f.Dst}} {
		switch {
		case p.prefix == (netip.Prefix{}):
		case !p.prefix.IsValid() || p.prefix.Addr().Is4In6():
			return fieldf(path+p.field, "is no prefix: state one such as 10.0.0.0/24 or 2001:db8::/64")
		case p.prefix != p.prefix.Masked():
			return fieldf(path+p.field, "%s has bits behind its prefix: state %s", p.prefix, p.prefix.Masked())
		}
	}
	if f.Src.IsValid() && f.Dst.IsValid() && f.Src.Addr().Is4() != f.Dst.Addr().Is4() {
		return fieldf(path+".dst", "%s is not of the family of src, %s: state addresses of one", f.Dst, f.Src)
	}
	for _, p := range []struct {
		field string
		ports PortRange
	}{{".src_port", f.SrcPort}, {".dst_port", f.DstPort}} {
		switch {
		case p.ports == (PortRange{}):
		case f.Protocol != ProtocolTCP && f.Protocol != ProtocolUDP:
			return fieldf(path+p.field, "only tcp and udp have ports: state proto too")
		case p.ports.First == 0 || p.ports.Last < p.ports.First:
			return fieldf(path+p.field, "%s is no range of ports: state one such as 80 or 8000-8999", p.ports)
		}
	}
	return nil
}
