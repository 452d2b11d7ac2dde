package text

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"sublet/openflow/of13"
)

// defaultPriority is left out, as ovs-ofctl does.
const defaultPriority = 32768

// order of fields behind the word for the protocol.
var order = []of13.FieldID{
	of13.TunnelID, of13.Metadata, of13.InPort, of13.InPhyPort, of13.VLANVID, of13.VLANPCP, of13.EthSrc, of13.EthDst, of13.EthType,
	of13.IPv6Src, of13.IPv6Dst, of13.IPv6FLabel, of13.ARPSPA, of13.ARPTPA, of13.IPv4Src, of13.IPv4Dst, of13.IPProto, of13.ARPOp,
	of13.ARPSHA, of13.ARPTHA, of13.IPDSCP, of13.IPECN, of13.MPLSLabel, of13.MPLSTC, of13.MPLSBOS, of13.PBBISID, of13.IPv6ExtHdr,
	of13.TCPSrc, of13.UDPSrc, of13.SCTPSrc, of13.TCPDst, of13.UDPDst, of13.SCTPDst,
	of13.ICMPv4Type, of13.ICMPv6Type, of13.ICMPv4Code, of13.ICMPv6Code, of13.NDTarget, of13.NDSLL, of13.NDTLL,
	of13.NSHFlags, of13.NSHTTL, of13.NSHMDType, of13.NSHNP, of13.NSHSPI, of13.NSHSI, of13.NSHC1, of13.NSHC2, of13.NSHC3, of13.NSHC4,
}

// names that differ from those of the specification.
var names = map[of13.FieldID]string{
	of13.TunnelID: "tun_id", of13.VLANVID: "dl_vlan", of13.VLANPCP: "dl_vlan_pcp", of13.EthSrc: "dl_src", of13.EthDst: "dl_dst", of13.EthType: "dl_type",
	of13.IPv6FLabel: "ipv6_label", of13.IPv4Src: "nw_src", of13.IPv4Dst: "nw_dst", of13.IPProto: "nw_proto", of13.IPDSCP: "nw_tos", of13.IPECN: "nw_ecn",
	of13.TCPSrc: "tp_src", of13.UDPSrc: "tp_src", of13.SCTPSrc: "tp_src", of13.TCPDst: "tp_dst", of13.UDPDst: "tp_dst", of13.SCTPDst: "tp_dst",
	of13.ICMPv4Type: "icmp_type", of13.ICMPv4Code: "icmp_code", of13.ICMPv6Type: "icmp_type", of13.ICMPv6Code: "icmp_code",
	of13.NDTarget: "nd_target", of13.NDSLL: "nd_sll", of13.NDTLL: "nd_tll",
}

// protocol is one that has a word of its own.
type protocol struct {
	word    string
	ethType uint64
	ipProto uint64 // 0: any
}

var protocols = []protocol{
	{"icmp", 0x0800, 1}, {"tcp", 0x0800, 6}, {"udp", 0x0800, 17}, {"sctp", 0x0800, 132}, {"ip", 0x0800, 0},
	{"icmp6", 0x86dd, 58}, {"tcp6", 0x86dd, 6}, {"udp6", 0x86dd, 17}, {"sctp6", 0x86dd, 132}, {"ipv6", 0x86dd, 0},
	{"arp", 0x0806, 0}, {"rarp", 0x8035, 0}, {"mpls", 0x8847, 0}, {"mplsm", 0x8848, 0},
}

// protocolOf is the most exact one that the fields have.
func protocolOf(has map[of13.FieldID]of13.Field) (protocol, bool) {
	kind, ok := has[of13.EthType]
	for _, p := range protocols {
		proto, stated := has[of13.IPProto]
		if ok && p.ethType == kind.Value.Lo && (p.ipProto == 0 || stated && proto.Value.Lo == p.ipProto) {
			return p, true
		}
	}
	return protocol{}, false
}

// Match writes fields, behind a priority that is not the usual one.
func Match(priority uint16, fields []of13.Field) string {
	var words []string
	if priority != defaultPriority {
		words = append(words, fmt.Sprintf("priority=%d", priority))
	}
	has := make(map[of13.FieldID]of13.Field, len(fields))
	for _, f := range fields {
		has[f.ID] = f
	}
	if p, ok := protocolOf(has); ok {
		words = append(words, p.word)
		delete(has, of13.EthType)
		if p.ipProto != 0 {
			delete(has, of13.IPProto)
		}
	}
	for _, id := range order {
		if f, ok := has[id]; ok {
			words = append(words, field(f))
		}
	}
	return strings.Join(words, ",")
}

// field writes one as NAME=VALUE, with a mask behind a slash.
func field(f of13.Field) string {
	if f.ID == of13.VLANVID && (f.Masked || f.Value.Lo&of13.VLANPresent == 0) {
		mask := uint64(0x1fff)
		if f.Masked {
			mask = f.Mask.Lo
		}
		return fmt.Sprintf("vlan_tci=0x%04x/0x%04x", f.Value.Lo, mask)
	}
	name := names[f.ID]
	if name == "" {
		name = of13.Fields[f.ID].Name
	}
	text := name + "=" + value(f.ID, f.Value)
	if f.ID == of13.IPv6FLabel {
		text = fmt.Sprintf("%s=0x%05x", name, f.Value.Lo)
	}
	if f.Masked {
		text += "/" + mask(f.ID, f.Mask)
	}
	return text
}

func value(id of13.FieldID, v of13.U128) string {
	switch of13.Fields[id].Bits {
	case 48:
		return hardware(v.Lo)
	case 128:
		return address6(v)
	}
	switch id {
	case of13.IPv4Src, of13.IPv4Dst, of13.ARPSPA, of13.ARPTPA:
		return address4(v.Lo)
	case of13.EthType:
		return fmt.Sprintf("0x%04x", v.Lo)
	case of13.InPort, of13.InPhyPort:
		return port(uint32(v.Lo))
	case of13.Metadata, of13.TunnelID, of13.IPv6FLabel, of13.IPv6ExtHdr, of13.PBBISID, of13.NSHSPI, of13.NSHC1, of13.NSHC2, of13.NSHC3, of13.NSHC4:
		return fmt.Sprintf("0x%x", v.Lo)
	case of13.VLANVID:
		return fmt.Sprint(v.Lo &^ of13.VLANPresent)
	case of13.IPDSCP:
		return fmt.Sprint(v.Lo << 2)
	}
	return fmt.Sprint(v.Lo)
}

// mask writes the length of a prefix where the mask of an address is one.
func mask(id of13.FieldID, m of13.U128) string {
	switch id {
	case of13.IPv4Src, of13.IPv4Dst, of13.ARPSPA, of13.ARPTPA:
		for bits := range 33 {
			if uint32(m.Lo) == ^uint32(0)<<(32-bits) {
				return fmt.Sprint(bits)
			}
		}
	case of13.IPv6Src, of13.IPv6Dst:
		for bits := range 129 {
			if prefix := of13.Ones(128).AndNot(of13.Ones(128 - bits)); prefix == m {
				return fmt.Sprint(bits)
			}
		}
	}
	return value(id, m)
}

func hardware(v uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", b[2], b[3], b[4], b[5], b[6], b[7])
}

func address4(v uint64) string {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(v))
	return netip.AddrFrom4(b).String()
}

func address6(v of13.U128) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], v.Hi)
	binary.BigEndian.PutUint64(b[8:], v.Lo)
	return netip.AddrFrom16(b).String()
}
