package ofswitch

import (
	"math/rand/v2"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

func serialized(t *testing.T, list ...gopacket.SerializableLayer) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, list...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// above is headers behind Ethernet's; their type is written there.
func above(r *rand.Rand, kind *layers.EthernetType, mac func() []byte) []gopacket.SerializableLayer {
	ttl := []uint8{64, 64, 64, 2, 1}[r.IntN(5)]
	switch r.IntN(8) {
	case 0:
		*kind = layers.EthernetTypeARP
		return []gopacket.SerializableLayer{&layers.ARP{AddrType: 1, Protocol: 0x0800, HwAddressSize: 6, ProtAddressSize: 4, Operation: 1, SourceHwAddress: mac(), SourceProtAddress: []byte{10, 0, 0, 1}, DstHwAddress: mac(), DstProtAddress: []byte{10, 0, 0, 2}}}
	case 1:
		*kind = layers.EthernetTypeIPv6
		v6 := &layers.IPv6{Version: 6, HopLimit: ttl, TrafficClass: uint8(r.IntN(2) * 9), NextHeader: layers.IPProtocolTCP, SrcIP: make([]byte, 16), DstIP: append(make([]byte, 15), byte(r.IntN(2)))}
		v6.SrcIP[0], v6.DstIP[0] = 0x20, 0x20
		tcp := &layers.TCP{SrcPort: 5, DstPort: layers.TCPPort(r.IntN(2)), DataOffset: 5}
		tcp.SetNetworkLayerForChecksum(v6)
		return []gopacket.SerializableLayer{v6, tcp}
	case 2:
		*kind = 0x88b5
		return nil
	}
	if r.IntN(3) == 0 {
		return labelled(r, kind, ttl)
	}
	*kind = layers.EthernetTypeIPv4
	return inIPv4(r, ttl)
}

// inIPv4 is a datagram of UDP, or SCTP.
func inIPv4(r *rand.Rand, ttl uint8) []gopacket.SerializableLayer {
	v4 := &layers.IPv4{Version: 4, TTL: ttl, TOS: uint8(r.IntN(2) * 75), Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, byte(r.IntN(8))}}
	if r.IntN(4) == 0 {
		v4.Protocol = layers.IPProtocolSCTP
		return []gopacket.SerializableLayer{v4, &layers.SCTP{SrcPort: 5, DstPort: layers.SCTPPort(r.IntN(3)), VerificationTag: 9}}
	}
	udp := &layers.UDP{SrcPort: 5, DstPort: layers.UDPPort(r.IntN(3))}
	udp.SetNetworkLayerForChecksum(v4)
	return []gopacket.SerializableLayer{v4, udp}
}

// labelled is what is behind one or two labels of MPLS, or a frame of its own behind a
// tag of PBB.
func labelled(r *rand.Rand, kind *layers.EthernetType, ttl uint8) (list []gopacket.SerializableLayer) {
	if r.IntN(3) == 0 {
		*kind = 0x88e7
		inside := append([]byte{0, 0, 0, byte(r.IntN(2))}, frameOf(0x88, 0xb5)...)
		return []gopacket.SerializableLayer{gopacket.Payload(inside)}
	}
	*kind = layers.EthernetTypeMPLSUnicast
	if r.IntN(2) == 0 {
		list = append(list, &layers.MPLS{Label: uint32(16 + r.IntN(3)), TrafficClass: uint8(r.IntN(2)), TTL: ttl})
	}
	list = append(list, &layers.MPLS{Label: uint32(16 + r.IntN(3)), StackBottom: true, TTL: ttl})
	return append(list, inIPv4(r, 64)...)
}
