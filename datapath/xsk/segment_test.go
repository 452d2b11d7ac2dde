package xsk

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// packet is a frame of TCP or UDP with whole checksums, as a library makes it.
func packet(t testing.TB, v6, tcp bool, tags int, seq uint32, flags func(*layers.TCP), payload []byte) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4}
	var network gopacket.NetworkLayer
	v4 := &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Id: 7, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}, Protocol: layers.IPProtocolUDP}
	v6p := &layers.IPv6{Version: 6, HopLimit: 64, SrcIP: netip.MustParseAddr("fd00::1").AsSlice(), DstIP: netip.MustParseAddr("fd00::2").AsSlice(), NextHeader: layers.IPProtocolUDP}
	var transport gopacket.SerializableLayer
	kind := layers.EthernetTypeIPv4
	network = v4
	if v6 {
		network, kind = v6p, layers.EthernetTypeIPv6
	}
	if tcp {
		v4.Protocol, v6p.NextHeader = layers.IPProtocolTCP, layers.IPProtocolTCP
		h := &layers.TCP{SrcPort: 1000, DstPort: 2000, Seq: seq, Ack: 9, ACK: true, Window: 100}
		flags(h)
		h.SetNetworkLayerForChecksum(network)
		transport = h
	} else {
		h := &layers.UDP{SrcPort: 1000, DstPort: 2000}
		h.SetNetworkLayerForChecksum(network)
		transport = h
	}
	list := []gopacket.SerializableLayer{eth}
	for i := range tags {
		list = append(list, &layers.Dot1Q{VLANIdentifier: uint16(5 + i), Type: layers.EthernetTypeDot1Q})
		eth.EthernetType = layers.EthernetTypeDot1Q
	}
	if tags > 0 {
		list[tags].(*layers.Dot1Q).Type = kind
	} else {
		eth.EthernetType = kind
	}
	list = append(list, network.(gopacket.SerializableLayer), transport, gopacket.Payload(payload))
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, list...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// left is a frame as a sender leaves it to its device: the sum of the pseudo
// header, by RFC 1071 word by word, in place of the checksum.
func left(b []byte, v6, tcp bool, tags int) []byte {
	b = bytes.Clone(b)
	l3 := 14 + 4*tags
	l4, proto, field := l3+20, byte(17), 6
	addresses := b[l3+12 : l3+20]
	if v6 {
		l4, addresses = l3+40, b[l3+8:l3+40]
	}
	if tcp {
		proto, field = 6, 16
	}
	sum := uint32(len(b)-l4) + uint32(proto)
	for i := 0; i < len(addresses); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(addresses[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[l4+field:], uint16(sum))
	return b
}

// loaded is the virtio header of a frame that was left as a segment.
func loaded(frame []byte, kind byte, part int) []byte {
	header := make([]byte, HeaderLen)
	Describe(header, frame)
	header[1] = kind
	binary.NativeEndian.PutUint16(header[4:], uint16(part))
	return header
}

func ack(*layers.TCP) {}

// Checksums that were left undone are known and made as a library makes them;
// frames with finished ones are left alone.
func TestUnfinishedChecksums(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 4000 {
		v6, tcp, tags := i&1 != 0, i&2 != 0, i>>2%3
		payload := make([]byte, 20+r.IntN(1400)) // the library pads shorter ones
		for j := range payload {
			payload[j] = byte(r.Uint32())
		}
		want := packet(t, v6, tcp, tags, uint32(i), ack, payload)
		if start, offset, is := unfinished(want); is { // it happens to be the same number
			again := bytes.Clone(want)
			if finish(again, start, offset); !bytes.Equal(again, want) {
				t.Fatalf("packet %d is not what it was", i)
			}
		}
		got := left(want, v6, tcp, tags)
		start, offset, is := unfinished(got)
		if !is || !finish(got, start, offset) || !bytes.Equal(got, want) {
			t.Fatalf("packet %d (v6 %t, tcp %t, %d tags): known %t\n% x\n% x", i, v6, tcp, tags, is, got, want)
		}
	}
}

// A segment is cut into the frames that a library makes of its parts.
func TestCut(t *testing.T) {
	payload := make([]byte, 5000)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	for _, c := range []struct {
		v6, tcp    bool
		tags, part int
		kind       byte
	}{{false, true, 0, 1448, gsoTCPv4}, {true, true, 0, 1400, gsoTCPv6}, {false, true, 1, 999, gsoTCPv4 | gsoECN}, {false, false, 0, 1000, gsoUDP}, {true, false, 2, 1234, gsoUDP}} {
		all := func(h *layers.TCP) { h.PSH, h.FIN, h.CWR = true, true, true }
		whole := left(packet(t, c.v6, c.tcp, c.tags, 100, all, payload), c.v6, c.tcp, c.tags)
		k, ok := cut(loaded(whole, c.kind, c.part), whole)
		if !ok || k.frames() != (len(payload)+c.part-1)/c.part {
			t.Fatalf("%+v: %d frames, %t", c, k.frames(), ok)
		}
		for at := 0; at < len(payload); at += c.part {
			end := min(at+c.part, len(payload))
			flags := func(h *layers.TCP) {
				h.CWR = at == 0
				h.PSH, h.FIN = end == len(payload), end == len(payload)
			}
			want := packet(t, c.v6, c.tcp, c.tags, uint32(100+at), flags, payload[at:end])
			if !c.v6 {
				renumber(want[14+4*c.tags:], uint16(7+at/c.part))
			}
			got := make([]byte, k.next())
			if k.write(got); !bytes.Equal(got, want) {
				t.Fatalf("%+v, from byte %d:\n% x\n% x", c, at, got[:min(len(got), 90)], want[:90])
			}
		}
		if k.next() != 0 {
			t.Errorf("%+v: there is more", c)
		}
	}
}

// renumber sets the number of an IPv4 packet; the first one of a segment has
// the segment's.
func renumber(ip []byte, id uint16) {
	binary.BigEndian.PutUint16(ip[4:], id)
	binary.BigEndian.PutUint16(ip[10:], 0)
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
}

// Whatever a port brings, with whatever virtio header, goes into the room there
// is for it or nowhere.
func FuzzFrames(f *testing.F) {
	f.Add(left(packet(f, false, true, 0, 1, ack, make([]byte, 3000)), false, true, 0), byte(1), byte(gsoTCPv4), uint16(1448), uint16(34), uint16(16))
	f.Add([]byte{}, byte(1), byte(0), uint16(0), uint16(0xffff), uint16(0xffff))
	s := NewDry(-1)
	f.Fuzz(func(t *testing.T, frame []byte, flags, kind byte, part, start, offset uint16) {
		if len(frame) < 14 || len(frame) > 1<<16 {
			return
		}
		h := loaded(frame, kind, int(part))
		h[0] = flags
		binary.NativeEndian.PutUint16(h[6:], start)
		binary.NativeEndian.PutUint16(h[8:], offset)
		before := s.vacant()
		if err := s.Put(h, frame); err != nil && s.vacant() != before {
			t.Errorf("%v, but %d places are used", err, before-s.vacant())
		}
		s.Send()
		s.Depart(func(b []byte) {
			if len(b) > s.chunk || len(b) == 0 {
				t.Errorf("a frame of %d bytes", len(b))
			}
		})
		s.reap()
	})
}
