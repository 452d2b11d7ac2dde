package ofswitch

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// segment is TCP in IPv4 as it would be on a wire.
func segment(t *testing.T, dst byte, port layers.TCPPort) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, dst}}
	tcp := &layers.TCP{SrcPort: 1000, DstPort: port, ACK: true, Window: 500}
	tcp.SetNetworkLayerForChecksum(ip)
	b := gopacket.NewSerializeBuffer()
	eth := &layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4}
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, tcp, gopacket.Payload("some payload")); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const atTCP = 34 // of the header in segment

// unfinished is a segment as its sender hands it over: the sum of the pseudo
// header in place of the checksum.
func unfinished(t *testing.T, dst byte, port layers.TCPPort) (frame []byte, header [virtio]byte) {
	frame = bytes.Clone(segment(t, dst, port))
	pseudo := sum(frame[26:34]) + 6 + uint64(len(frame)-atTCP)
	binary.BigEndian.PutUint16(frame[atTCP+16:], fold(pseudo))
	header[0] = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
	binary.NativeEndian.PutUint16(header[6:], atTCP)
	binary.NativeEndian.PutUint16(header[8:], 16)
	return frame, header
}

func TestChecksumsAreFinished(t *testing.T) {
	frame, header := unfinished(t, 2, 80)
	r := received{frame: frame, header: header}
	r.checksum()
	if want := segment(t, 2, 80); !bytes.Equal(frame, want) {
		t.Errorf("%x instead of %x", frame, want)
	}
}

type sink struct{ frame []byte }

func (s *sink) Send(_, _ uint32, frame []byte) { s.frame = bytes.Clone(frame) }
func (*sink) PacketIn(*of13.PacketIn)          {}
func (*sink) FlowRemoved(m *of13.FlowRemoved)  {}
func (*sink) PortStatus(m *of13.PortStatus)    {}

// A segment that is still to be cut leaves with another address, port and a tag
// as its sender would have handed it over with these.
func TestSegmentsAreChangedWithTheirSum(t *testing.T) {
	frame, header := unfinished(t, 2, 80)
	header[1] = 1 // VIRTIO_NET_HDR_GSO_TCPV4
	r := received{frame: frame, header: header}
	r.checksum()
	out := &sink{}
	s := pipeline.New(pipeline.Config{Tables: 1, Entries: 1}, out)
	s.SetPort(0, of13.Port{Number: 1})
	s.SetPort(0, of13.Port{Number: 2})
	_, err := s.Do(0, &of13.FlowMod{Buffer: of13.NoBuffer, Match: of13.Match{Fields: []of13.Field{of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, 6)}},
		Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{
			of13.SetField(of13.Exact(of13.IPv4Dst, 0x0a000009)), of13.SetField(of13.Exact(of13.TCPDst, 8080)), {Type: of13.ActionPushVLAN, EtherType: 0x8100}, of13.Output(2)}}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Receive(0, 1, r.frame)
	got := r.ready(out.frame)
	want, _ := unfinished(t, 9, 8080)
	if tagless := append(bytes.Clone(out.frame[:12]), out.frame[16:]...); !bytes.Equal(tagless, want) {
		t.Errorf("%x instead of %x", tagless, want)
	}
	if start := binary.NativeEndian.Uint16(got[6:]); start != atTCP+4 {
		t.Errorf("the sum begins at %d", start)
	}
}
