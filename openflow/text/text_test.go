package text

import (
	"testing"

	"sublet/openflow/of13"
)

// What ovs-ofctl 3.1 dump-flows writes of the same entries.
func TestAsOvsOfctl(t *testing.T) {
	exact := of13.Exact
	for _, c := range []struct {
		priority uint16
		match    []of13.Field
		want     string
	}{
		{0, nil, "priority=0"},
		{32768, []of13.Field{exact(of13.InPort, 1)}, "in_port=1"},
		{1, []of13.Field{exact(of13.EthDst, 0x020000000001)}, "priority=1,dl_dst=02:00:00:00:00:01"},
		{5, []of13.Field{exact(of13.EthType, 0x0800), exact(of13.IPProto, 6), exact(of13.TCPDst, 80), of13.WithMask(of13.IPv4Src, of13.U128{Lo: 0x0a000000}, of13.U128{Lo: 0xff000000})},
			"priority=5,tcp,nw_src=10.0.0.0/8,tp_dst=80"},
		{5, []of13.Field{exact(of13.EthType, 0x0806), exact(of13.ARPTPA, 0x0a000001), exact(of13.ARPOp, 1)}, "priority=5,arp,arp_tpa=10.0.0.1,arp_op=1"},
		{5, []of13.Field{exact(of13.VLANVID, of13.VLANPresent|7), exact(of13.VLANPCP, 3)}, "priority=5,dl_vlan=7,dl_vlan_pcp=3"},
		{5, []of13.Field{exact(of13.VLANVID, 0)}, "priority=5,vlan_tci=0x0000/0x1fff"},
		{5, []of13.Field{exact(of13.EthType, 0x88b5)}, "priority=5,dl_type=0x88b5"},
		{5, []of13.Field{exact(of13.EthType, 0x86dd), of13.WithMask(of13.IPv6Dst, of13.U128{Hi: 0x20010db8 << 32}, of13.U128{Hi: 0xffffffff << 32})}, "priority=5,ipv6,ipv6_dst=2001:db8::/32"},
		{5, []of13.Field{exact(of13.EthType, 0x0800), exact(of13.IPDSCP, 46)}, "priority=5,ip,nw_tos=184"},
		{5, []of13.Field{exact(of13.InPort, uint64(of13.PortLocal))}, "priority=5,in_port=LOCAL"},
		{5, []of13.Field{exact(of13.EthType, 0x894f), exact(of13.NSHSPI, 0x1234), exact(of13.NSHSI, 255), of13.WithMask(of13.NSHC1, of13.U128{Lo: 0x12}, of13.U128{Lo: 0xff})},
			"priority=5,dl_type=0x894f,nsh_spi=0x1234,nsh_si=255,nsh_c1=0x12/0xff"},
		{5, []of13.Field{exact(of13.EthType, 0x86dd), exact(of13.IPv6FLabel, 5)}, "priority=5,ipv6,ipv6_label=0x00005"},
	} {
		if got := Match(c.priority, c.match); got != c.want {
			t.Errorf("%q instead of %q", got, c.want)
		}
	}
	for want, f := range map[string]of13.Field{
		"set_field:10.0.0.1->ip_src": exact(of13.IPv4Src, 0x0a000001), "set_field:10.0.0.2->ip_dst": exact(of13.IPv4Dst, 0x0a000002),
		"set_field:46->ip_dscp": exact(of13.IPDSCP, 46), "set_field:3->nw_ecn": exact(of13.IPECN, 3), "set_field:0x5->ipv6_label": exact(of13.IPv6FLabel, 5),
		"set_field:8->icmp_type": exact(of13.ICMPv4Type, 8), "set_field:0->icmp_code": exact(of13.ICMPv4Code, 0), "set_field:135->icmpv6_type": exact(of13.ICMPv6Type, 135),
		"set_field:00:00:00:00:00:01->nd_sll": exact(of13.NDSLL, 1), "set_field:00:00:00:00:00:01->nd_tll": exact(of13.NDTLL, 1),
		"set_field:0x7->tun_id": exact(of13.TunnelID, 7), "set_field:80->tcp_dst": exact(of13.TCPDst, 80), "set_field:4103->vlan_vid": exact(of13.VLANVID, of13.VLANPresent|7),
	} {
		if got := action(of13.SetField(f)); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
	in := []of13.Instruction{
		{Type: of13.InstructionGoto, Table: 2},
		{Type: of13.InstructionApply, Actions: []of13.Action{of13.SetField(exact(of13.EthSrc, 1)), of13.Output(3), of13.Output(of13.PortController)}},
		{Type: of13.InstructionWrite, Actions: []of13.Action{{Type: of13.ActionGroup, Number: 9}, {Type: of13.ActionDecNWTTL}}},
	}
	if got, want := Actions(in), "set_field:00:00:00:00:00:01->eth_src,output:3,CONTROLLER:65535,write_actions(group:9,dec_ttl),goto_table:2"; got != want {
		t.Errorf("%q instead of %q", got, want)
	}
	services := []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{
		{Type: of13.ActionDecNSHTTL}, {Type: of13.ActionDecap, Packet: of13.PacketNext}, {Type: of13.ActionEncap, Packet: of13.PacketNSH, MDType: 2},
		of13.SetField(exact(of13.NSHSPI, 5)), {Type: of13.ActionEncap},
	}}}
	if got, want := Actions(services), "dec_nsh_ttl,decap(),encap(nsh(md_type=2)),set_field:0x5->nsh_spi,encap(ethernet)"; got != want {
		t.Errorf("%q instead of %q", got, want)
	}
	if got := Actions(nil); got != "drop" {
		t.Errorf("nothing is %q", got)
	}
}
