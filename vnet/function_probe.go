package vnet

import (
	"net/netip"
	"slices"
)

// StandardProbe is a packet that no node sends: its addresses are of documentation
// (RFC 5737), its port is that of a service which throws all away (RFC 863).
var StandardProbe = Packets{
	Protocol: ProtocolUDP, Dst: netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, 2}), 32), DstPort: PortRange{First: 9, Last: 9},
}

// Senders of probes that state none.
var (
	prober4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), 32)
	prober6 = netip.PrefixFrom(netip.MustParseAddr("2001:db8::1"), 128)
)

// proberPort is that from which probes come that state none.
const proberPort = 9

// Probed says whether it is sent a packet that it has to pass.
func (f Function) Probed() bool { return f.Probe != Packets{} }

// ProbePacket is the probe with what it does not state.
func (f Function) ProbePacket() Packets {
	p := f.Probe
	if p.Protocol == "" {
		p.Protocol = ProtocolUDP
	}
	if !p.Src.IsValid() && p.Is6() {
		p.Src = prober6
	} else if !p.Src.IsValid() {
		p.Src = prober4
	}
	if p.Protocol != ProtocolICMP && p.SrcPort == (PortRange{}) {
		p.SrcPort = PortRange{First: proberPort, Last: proberPort}
	}
	return p
}

// checkProbe checks that the probe is one packet.
func (f Function) checkProbe(path string) error {
	if !f.Probed() {
		return nil
	}
	p := f.ProbePacket()
	if err := p.check(path); err != nil {
		return err
	}
	switch {
	case !p.Dst.IsValid():
		return fieldf(path+".dst", "is missing: state the address to which it goes, or probe: true for a packet to %s", StandardProbe.Dst.Addr())
	case !p.Dst.IsSingleIP():
		return fieldf(path+".dst", "%s are several addresses, and a probe goes to one: state one", p.Dst)
	case !p.Src.IsSingleIP():
		return fieldf(path+".src", "%s are several addresses, and a probe comes from one: state one", p.Src)
	case p.Protocol != ProtocolICMP && p.DstPort == (PortRange{}):
		return fieldf(path+".dst_port", "is missing: state the port to which it goes")
	case p.DstPort.First != p.DstPort.Last:
		return fieldf(path+".dst_port", "%s are several ports, and a probe goes to one: state one", p.DstPort)
	case p.SrcPort.First != p.SrcPort.Last:
		return fieldf(path+".src_port", "%s are several ports, and a probe comes from one: state one", p.SrcPort)
	case p.VLAN != nil && *p.VLAN != 0:
		return fieldf(path+".vlan", "probes have no tag: leave it out")
	}
	return nil
}

// checkProbed checks that somebody looks whether a function with a probe lives.
func (r Request) checkProbed(path string, n VirtualNode) error {
	if !n.Function.Probed() || !r.leadsThrough(n.Name) {
		return nil
	}
	for _, c := range r.Chains {
		if c.OnFailure != "" && slices.Contains(c.Via, n.Name) {
			return nil
		}
	}
	return fieldf(path, "no chain through %s says what becomes of packets when it dies: state on-failure there, or leave the probe out", n.Name)
}
