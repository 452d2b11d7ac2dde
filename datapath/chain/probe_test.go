package chain

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"sublet/datapath/nsh"
	"sublet/datapath/nsh/header"
	"sublet/plan"
	"sublet/vnet"
)

// A probe is the packet that its match states, whole and with checksums that fit.
func TestProbesAreWhatIsStated(t *testing.T) {
	expedited := uint8(46)
	for _, c := range []struct {
		probe vnet.Packets
		kind  gopacket.LayerType
	}{
		{vnet.StandardProbe, layers.LayerTypeUDP},
		{vnet.Packets{Protocol: vnet.ProtocolTCP, Dst: netip.MustParsePrefix("10.0.0.2/32"), DstPort: vnet.PortRange{First: 80, Last: 80}, DSCP: &expedited}, layers.LayerTypeTCP},
		{vnet.Packets{Protocol: vnet.ProtocolICMP, Dst: netip.MustParsePrefix("2001:db8:7::2/128")}, layers.LayerTypeICMPv6},
		{vnet.Packets{Protocol: vnet.ProtocolICMP, Dst: netip.MustParsePrefix("10.0.0.2/32")}, layers.LayerTypeICMPv4},
	} {
		whole := vnet.Function{Probe: c.probe}.ProbePacket()
		m := plan.ChainMatch{Protocol: whole.Protocol, Src: whole.Src, Dst: whole.Dst, DSCP: whole.DSCP,
			SrcPorts: [2]uint16{whole.SrcPort.First}, DstPorts: [2]uint16{whole.DstPort.First}}
		frame, err := probeFrame(m)
		if err != nil {
			t.Fatal(err)
		}
		behind, err := behindHeader(frame, plan.ChainHop{Path: 77, Index: 253})
		if err != nil {
			t.Fatal(err)
		}
		h, rest, err := header.Parse(behind[14:])
		if err != nil || h.Path != 77 || h.Index != 253 || h.Next != header.Ethernet || !bytes.Equal(rest, frame) || !bytes.Equal(behind[6:14], append(slices.Clone(nsh.Prober), 0x89, 0x4f)) {
			t.Errorf("to a function that knows NSH goes % x: %+v, %v", behind, h, err)
		}
		p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
		if p.ErrorLayer() != nil || p.Layer(c.kind) == nil {
			t.Fatalf("%+v is %s", c.probe, p)
		}
		if from := p.LinkLayer().LinkFlow().Src().String(); from != nsh.Prober.String() {
			t.Errorf("it comes from %s", from)
		}
		if to := p.NetworkLayer().NetworkFlow().Dst().String(); to != c.probe.Dst.Addr().String() {
			t.Errorf("it goes to %s, want %s", to, c.probe.Dst)
		}
		if above, ok := p.Layer(c.kind).(interface {
			SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
		}); ok {
			if err := above.SetNetworkLayerForChecksum(p.NetworkLayer()); err != nil {
				t.Fatal(err)
			}
		}
		if err, wrong := p.VerifyChecksums(); err != nil || len(wrong) > 0 {
			t.Errorf("%s: checksums %+v, %v", p, wrong, err)
		}
		if ip, ok := p.NetworkLayer().(*layers.IPv4); ok && c.probe.DSCP != nil && ip.TOS != expedited<<2 {
			t.Errorf("its TOS is %d", ip.TOS)
		}
	}
}
