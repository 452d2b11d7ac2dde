package pipeline

import (
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// The parser of fixed headers beside generic ones: that of gopacket, which makes an
// object of each header, and its decoder into headers that are there already.
func BenchmarkParsers(b *testing.B) {
	frame := udp(b, 22)
	b.Run("fixed", func(b *testing.B) {
		var p packet
		for b.Loop() {
			p.load(frame, 1)
		}
	})
	b.Run("gopacket", func(b *testing.B) {
		for b.Loop() {
			if gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.NoCopy).Layer(layers.LayerTypeUDP) == nil {
				b.Fatal("no UDP")
			}
		}
	})
	b.Run("gopacket, headers that are there", func(b *testing.B) {
		var ether layers.Ethernet
		var ip layers.IPv4
		var u layers.UDP
		parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &ether, &ip, &u)
		parser.IgnoreUnsupported = true
		var found []gopacket.LayerType
		for b.Loop() {
			if err := parser.DecodeLayers(frame, &found); err != nil || len(found) < 3 {
				b.Fatal(found, err)
			}
		}
	})
}
