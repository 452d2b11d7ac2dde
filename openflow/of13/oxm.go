package of13

// FieldID is the number of an OpenFlow match field (ofb_match_fields).
type FieldID uint8

// Match fields.
const (
	InPort FieldID = iota
	InPhyPort
	Metadata
	EthDst
	EthSrc
	EthType
	VLANVID
	VLANPCP
	IPDSCP
	IPECN
	IPProto
	IPv4Src
	IPv4Dst
	TCPSrc
	TCPDst
	UDPSrc
	UDPDst
	SCTPSrc
	SCTPDst
	ICMPv4Type
	ICMPv4Code
	ARPOp
	ARPSPA
	ARPTPA
	ARPSHA
	ARPTHA
	IPv6Src
	IPv6Dst
	IPv6FLabel
	ICMPv6Type
	ICMPv6Code
	NDTarget
	NDSLL
	NDTLL
	MPLSLabel
	MPLSTC
	MPLSBOS
	PBBISID
	TunnelID
	IPv6ExtHdr
	NSHFlags // from here on: of experimenter ExperimenterNSH
	NSHMDType
	NSHNP
	NSHSPI
	NSHSI
	NSHC1
	NSHC2
	NSHC3
	NSHC4
	NSHTTL
	NumFields
)

// ExperimenterNSH is who has numbered the fields of service headers (RFC 8300), for Open
// vSwitch: NXOXM_NSH of its meta-flow.h. Its numbers begin with 1.
const ExperimenterNSH uint32 = 0x005ad650

// EthTypeNSH is the type of Ethernet in front of a service header.
const EthTypeNSH = 0x894f

// number of a field within its class.
func (id FieldID) number() uint8 {
	if id.experimenter() {
		return uint8(id - NSHFlags + 1)
	}
	return uint8(id)
}

// experimenter says whether a field is none of OpenFlow's own.
func (id FieldID) experimenter() bool { return id >= NSHFlags }

// fieldOf finds a field by class and number; the class of experimenters stands for
// ExperimenterNSH.
func fieldOf(class uint16, number uint8) (id FieldID, known bool) {
	switch {
	case class == classBasic && FieldID(number) < NSHFlags:
		return FieldID(number), true
	case class == classExperimenter && number >= 1 && number <= uint8(NumFields-NSHFlags):
		return NSHFlags + FieldID(number) - 1, true
	}
	return 0, false
}

// VLANPresent is the bit of VLAN_VID that says that there is a tag.
const VLANPresent = 0x1000

// FieldInfo is what the specification says of a match field (table 12).
type FieldInfo struct {
	Name     string
	Bits     int
	Bytes    int  // on the wire
	Maskable bool // may be matched in part
	ReadOnly bool // may not be set by an action
	needs    func(Context) bool
}

// Context is what is known of a packet, by the fields of a match before a
// place, as far as prerequisites ask for it.
type Context struct {
	InPort, VLAN bool
	Headless     bool   // an NSH or IP packet that no Ethernet is in front of
	EthType      uint16 // 0: unknown
	IPProto      int    // -1: unknown
	ICMPv6Type   int    // -1: unknown
}

// NewContext knows nothing.
func NewContext() Context { return Context{IPProto: -1, ICMPv6Type: -1} }

// Learn adds an exact field.
func (x *Context) Learn(f *Field) {
	switch f.ID {
	case InPort:
		x.InPort = true
	case VLANVID:
		x.VLAN = f.Value.Lo&VLANPresent != 0
	case EthType:
		x.EthType = uint16(f.Value.Lo)
	case IPProto:
		x.IPProto = int(f.Value.Lo)
	case ICMPv6Type:
		x.ICMPv6Type = int(f.Value.Lo)
	}
}

// Allows says whether the prerequisites of a field are met.
func (x Context) Allows(id FieldID) bool {
	needs := Fields[id].needs
	return needs == nil || needs(x)
}

func needPort(x Context) bool { return x.InPort }
func needVLAN(x Context) bool { return x.VLAN }
func needIPv4(x Context) bool { return x.EthType == 0x0800 }
func needIPv6(x Context) bool { return x.EthType == 0x86dd }
func needIP(x Context) bool   { return needIPv4(x) || needIPv6(x) }
func needNSH(x Context) bool  { return x.EthType == EthTypeNSH }
func needARP(x Context) bool  { return x.EthType == 0x0806 }
func needMPLS(x Context) bool { return x.EthType == 0x8847 || x.EthType == 0x8848 }
func needPBB(x Context) bool  { return x.EthType == 0x88e7 }
func needTCP(x Context) bool  { return needIP(x) && x.IPProto == 6 }
func needUDP(x Context) bool  { return needIP(x) && x.IPProto == 17 }
func needSCTP(x Context) bool { return needIP(x) && x.IPProto == 132 }
func needICMP(x Context) bool { return needIPv4(x) && x.IPProto == 1 }
func needICMPv6(x Context) bool {
	return needIPv6(x) && x.IPProto == 58
}
func needND(x Context) bool { return needNS(x) || needNA(x) }
func needNS(x Context) bool { return needICMPv6(x) && x.ICMPv6Type == 135 }
func needNA(x Context) bool { return needICMPv6(x) && x.ICMPv6Type == 136 }

// Fields has what is to know of each field.
var Fields = [NumFields]FieldInfo{
	InPort:     {"in_port", 32, 4, false, true, nil},
	InPhyPort:  {"in_phy_port", 32, 4, false, true, needPort},
	Metadata:   {"metadata", 64, 8, true, true, nil},
	EthDst:     {"eth_dst", 48, 6, true, false, nil},
	EthSrc:     {"eth_src", 48, 6, true, false, nil},
	EthType:    {"eth_type", 16, 2, false, false, nil},
	VLANVID:    {"vlan_vid", 13, 2, true, false, nil},
	VLANPCP:    {"vlan_pcp", 3, 1, false, false, needVLAN},
	IPDSCP:     {"ip_dscp", 6, 1, false, false, needIP},
	IPECN:      {"ip_ecn", 2, 1, false, false, needIP},
	IPProto:    {"ip_proto", 8, 1, false, false, needIP},
	IPv4Src:    {"ipv4_src", 32, 4, true, false, needIPv4},
	IPv4Dst:    {"ipv4_dst", 32, 4, true, false, needIPv4},
	TCPSrc:     {"tcp_src", 16, 2, false, false, needTCP},
	TCPDst:     {"tcp_dst", 16, 2, false, false, needTCP},
	UDPSrc:     {"udp_src", 16, 2, false, false, needUDP},
	UDPDst:     {"udp_dst", 16, 2, false, false, needUDP},
	SCTPSrc:    {"sctp_src", 16, 2, false, false, needSCTP},
	SCTPDst:    {"sctp_dst", 16, 2, false, false, needSCTP},
	ICMPv4Type: {"icmpv4_type", 8, 1, false, false, needICMP},
	ICMPv4Code: {"icmpv4_code", 8, 1, false, false, needICMP},
	ARPOp:      {"arp_op", 16, 2, false, false, needARP},
	ARPSPA:     {"arp_spa", 32, 4, true, false, needARP},
	ARPTPA:     {"arp_tpa", 32, 4, true, false, needARP},
	ARPSHA:     {"arp_sha", 48, 6, true, false, needARP},
	ARPTHA:     {"arp_tha", 48, 6, true, false, needARP},
	IPv6Src:    {"ipv6_src", 128, 16, true, false, needIPv6},
	IPv6Dst:    {"ipv6_dst", 128, 16, true, false, needIPv6},
	IPv6FLabel: {"ipv6_flabel", 20, 4, true, false, needIPv6},
	ICMPv6Type: {"icmpv6_type", 8, 1, false, false, needICMPv6},
	ICMPv6Code: {"icmpv6_code", 8, 1, false, false, needICMPv6},
	NDTarget:   {"ipv6_nd_target", 128, 16, false, false, needND},
	NDSLL:      {"ipv6_nd_sll", 48, 6, false, false, needNS},
	NDTLL:      {"ipv6_nd_tll", 48, 6, false, false, needNA},
	MPLSLabel:  {"mpls_label", 20, 4, false, false, needMPLS},
	MPLSTC:     {"mpls_tc", 3, 1, false, false, needMPLS},
	MPLSBOS:    {"mpls_bos", 1, 1, false, false, needMPLS},
	PBBISID:    {"pbb_isid", 24, 3, true, false, needPBB},
	TunnelID:   {"tunnel_id", 64, 8, true, false, nil},
	IPv6ExtHdr: {"ipv6_exthdr", 9, 2, true, true, needIPv6},
	NSHFlags:   {"nsh_flags", 8, 1, true, false, needNSH},
	NSHMDType:  {"nsh_mdtype", 8, 1, false, true, needNSH},
	NSHNP:      {"nsh_np", 8, 1, false, true, needNSH},
	NSHSPI:     {"nsh_spi", 24, 4, false, false, needNSH},
	NSHSI:      {"nsh_si", 8, 1, false, false, needNSH},
	NSHC1:      {"nsh_c1", 32, 4, true, false, needNSH},
	NSHC2:      {"nsh_c2", 32, 4, true, false, needNSH},
	NSHC3:      {"nsh_c3", 32, 4, true, false, needNSH},
	NSHC4:      {"nsh_c4", 32, 4, true, false, needNSH},
	NSHTTL:     {"nsh_ttl", 6, 1, false, false, needNSH},
}
