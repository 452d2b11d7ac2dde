package lookup

import (
	"encoding/binary"
	"net/netip"

	"sublet/vxswitch"
)

// Ethernet types and the rest of the numbers Parse knows (IANA).
const (
	typeIPv4  = 0x0800
	typeARP   = 0x0806
	typeIPv6  = 0x86dd
	typeVLAN  = 0x8100
	typeQinQ  = 0x88a8
	typeMPLS  = 0x8847
	typeMPLSM = 0x8848
	protoTCP  = 6
	protoND   = 58 // ICMPv6
	protoUDP  = 17
	portVXLAN = 4789
)

// Parse reads from a frame what lookups look at. It stops where the frame
// stops making sense or is cut off; what it has read till then stands. It says
// whether there is an Ethernet header at all.
func Parse(frame []byte, h *vxswitch.Header) bool {
	*h = vxswitch.Header{}
	if len(frame) < 14 {
		return false
	}
	copy(h.Dst[:], frame)
	copy(h.Src[:], frame[6:])
	h.EtherType = binary.BigEndian.Uint16(frame[12:])
	payload := tags(frame[14:], h)
	switch h.EtherType {
	case typeIPv4:
		parseIPv4(payload, h)
	case typeIPv6:
		parseIPv6(payload, h)
	case typeARP:
		parseARP(payload, h)
	case typeMPLS, typeMPLSM:
		if len(payload) >= 4 {
			h.Label, h.HasLabel = binary.BigEndian.Uint32(payload)>>12, true
		}
	}
	return true
}

// tags reads VLAN tags; the outermost with an ID counts. Two at most.
func tags(b []byte, h *vxswitch.Header) []byte {
	for range 2 {
		if h.EtherType != typeVLAN && h.EtherType != typeQinQ || len(b) < 4 {
			return b
		}
		if id := binary.BigEndian.Uint16(b) & 0xfff; h.VLAN == 0 {
			h.VLAN = id
		}
		h.EtherType = binary.BigEndian.Uint16(b[2:])
		b = b[4:]
	}
	return b
}

func parseIPv4(b []byte, h *vxswitch.Header) {
	if len(b) < 20 || b[0]>>4 != 4 {
		return
	}
	h.DSCP, h.Proto = b[1]>>2, b[9]
	h.SrcIP = netip.AddrFrom4([4]byte(b[12:16]))
	h.DstIP = netip.AddrFrom4([4]byte(b[16:20]))
	head := int(b[0]&15) * 4
	first := binary.BigEndian.Uint16(b[6:])&0x1fff == 0
	if head >= 20 && len(b) >= head && first {
		parsePorts(b[head:], h)
	}
}

func parseIPv6(b []byte, h *vxswitch.Header) {
	if len(b) < 40 || b[0]>>4 != 6 {
		return
	}
	h.DSCP, h.Proto = uint8(binary.BigEndian.Uint16(b)>>6)&63, b[6]
	h.SrcIP = netip.AddrFrom16([16]byte(b[8:24]))
	h.DstIP = netip.AddrFrom16([16]byte(b[24:40]))
	parsePorts(b[40:], h)
	parseND(b[40:], h)
}

// parseARP reads the address that a request asks for (RFC 826).
func parseARP(b []byte, h *vxswitch.Header) {
	const requestForIPv4 = "\x00\x01\x08\x00\x06\x04\x00\x01" // on Ethernet
	if len(b) >= 28 && string(b[:8]) == requestForIPv4 {
		h.Target = netip.AddrFrom4([4]byte(b[24:28]))
	}
}

// parseND reads the address that a neighbour solicitation asks for (RFC 4861,
// 4.3).
func parseND(b []byte, h *vxswitch.Header) {
	const solicitation = 135
	if h.Proto == protoND && len(b) >= 24 && b[0] == solicitation {
		h.Target = netip.AddrFrom16([16]byte(b[8:24]))
	}
}

// parsePorts reads TCP and UDP ports and the VNI behind VXLAN's (RFC 7348).
func parsePorts(b []byte, h *vxswitch.Header) {
	if h.Proto != protoTCP && h.Proto != protoUDP || len(b) < 8 {
		return
	}
	h.SrcPort, h.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	if h.Proto == protoUDP && h.DstPort == portVXLAN && len(b) >= 16 && b[8]&8 != 0 {
		h.VNI, h.HasVNI = binary.BigEndian.Uint32(b[12:])>>8, true
	}
}
