package pipeline

import (
	"encoding/binary"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"sublet/openflow/of13"
)

// fragment6 is a frame of IPv6 with a fragment header of such an offset and flags.
func fragment6(t *testing.T, at uint16) []byte {
	ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: 44, SrcIP: make([]byte, 16), DstIP: make([]byte, 16)}
	head := binary.BigEndian.AppendUint16([]byte{59, 0}, at)
	return serialize(t, &layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv6}, ip, gopacket.Payload(append(head, make([]byte, 40)...)))
}

// Fragments meet entries as they are, or are dropped if the configuration says so, and
// no Flow of the others takes them; nothing is reassembled.
func TestFragments(t *testing.T) {
	part := func(at uint16) []byte {
		f := udp(t, 40)
		binary.BigEndian.PutUint16(f[20:], at)
		return f
	}
	for _, c := range []struct {
		what  string
		frame []byte
		is    bool
	}{
		{"whole", udp(t, 40), false}, {"whole, not to be cut", part(0x4000), false}, {"the first", part(0x2000), true}, {"the second", part(0x2005), true}, {"the last", part(0x0005), true},
		{"whole of IPv6", fragment6(t, 0), false}, {"the first of IPv6", fragment6(t, 1), true}, {"the last of IPv6", fragment6(t, 0x28), true},
	} {
		s, r := newSwitch(t)
		must(t, s, 0, flow(0, 1, apply(of13.Output(2))))
		s.Receive(0, 1, c.frame)
		if len(r.sent) != 1 {
			t.Errorf("%s: %d frames leave by default", c.what, len(r.sent))
		}
		r.sent = nil
		must(t, s, 0, &of13.Config{Kind: of13.TypeSetConfig, Flags: of13.FragDrop, MissSendBytes: 9})
		if f, _ := s.ReceiveFlow(0, 1, c.frame, 1); f != nil {
			t.Errorf("%s: there is a flow, which fragments would meet", c.what)
		}
		if dropped := s.ports[1].stats.RxDropped; (len(r.sent) == 0) != c.is || (dropped == 1) != c.is {
			t.Errorf("%s: %d frames leave, %d are counted as dropped", c.what, len(r.sent), dropped)
		}
		reply, err := s.Do(0, &of13.Plain{Kind: of13.TypeGetConfigRequest})
		if got, ok := reply.(*of13.Config); err != nil || !ok || got.Flags != of13.FragDrop || got.MissSendBytes != 9 {
			t.Errorf("configuration: %+v, %v", reply, err)
		}
		if _, err := s.Do(0, &of13.Config{Kind: of13.TypeSetConfig, Flags: of13.FragReassemble}); err != error(of13.SwitchConfigFailedBadFlags) {
			t.Error(err)
		}
		must(t, s, 0, &of13.Config{Kind: of13.TypeSetConfig})
		r.sent = nil
		if s.Receive(0, 1, c.frame); len(r.sent) != 1 {
			t.Errorf("%s: %d frames leave again", c.what, len(r.sent))
		}
	}
}

// A port advertises what it supports, and nothing else.
func TestPortsAdvertise(t *testing.T) {
	s, r := newSwitch(t)
	p := of13.Port{Number: 1, HWAddr: [6]byte{2, 0, 0, 0, 1, 0}, Supported: 0x60}
	s.SetPort(0, p)
	mod := func(advertise uint32) error {
		_, err := s.Do(0, &of13.PortMod{Port: 1, HWAddr: p.HWAddr, Advertise: advertise})
		return err
	}
	r.status = nil
	if err := mod(0x20); err != nil || s.ports[1].Advertised != 0x20 || len(r.status) != 1 {
		t.Errorf("%v, %x, told %d times", err, s.ports[1].Advertised, len(r.status))
	}
	if err := mod(0x80); err != error(of13.PortModFailedBadAdvertise) {
		t.Error(err)
	}
	if err := mod(0); err != nil || s.ports[1].Advertised != 0x20 {
		t.Errorf("%v, %x", err, s.ports[1].Advertised)
	}
	if s.SetPort(0, p); s.ports[1].Advertised != 0x20 {
		t.Errorf("looked at again it advertises %x", s.ports[1].Advertised)
	}
}
