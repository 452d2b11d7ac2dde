package pipeline

import (
	"bytes"
	"testing"

	"sublet/openflow/of13"
)

var (
	pushNSH      = of13.Action{Type: of13.ActionEncap, Packet: of13.PacketNSH, MDType: 1}
	pushEthernet = of13.Action{Type: of13.ActionEncap, Packet: of13.PacketEthernet}
	pop          = of13.Action{Type: of13.ActionDecap, Packet: of13.PacketNext}
	lessNSH      = of13.Action{Type: of13.ActionDecNSHTTL}
	isNSH        = of13.Exact(of13.EthType, of13.EthTypeNSH)
)

// Service headers are put in front of frames, of packets without Ethernet and of each
// other, and come off in the reverse order.
func TestServiceHeadersAreWrapped(t *testing.T) {
	frame := udp(t, 40)
	for name, c := range map[string]struct {
		does []of13.Action
		want []byte // nil: nothing leaves
	}{
		"push":               {[]of13.Action{pushNSH, pushEthernet, of13.Output(2)}, wrapped(frame, 3)},
		"push and pop":       {[]of13.Action{pushNSH, pushEthernet, pop, pop, of13.Output(2)}, frame},
		"twice":              {[]of13.Action{pushNSH, pushNSH, pushEthernet, of13.Output(2)}, wrapped(wrapped(frame, 3), 4)},
		"of IP":              {[]of13.Action{pop, pushNSH, pushEthernet, of13.Output(2)}, wrapped(append(make([]byte, 12), frame[12:]...), 1)},
		"no Ethernet":        {[]of13.Action{pushNSH, of13.Output(2)}, nil},
		"flooded without":    {[]of13.Action{pushNSH, of13.Output(of13.PortNormal), of13.Output(of13.PortFlood)}, nil},
		"Ethernet twice":     {[]of13.Action{pushEthernet, of13.Output(2)}, nil},
		"pop of IP":          {[]of13.Action{pop, pop, of13.Output(2)}, nil},
		"a tag on nothing":   {[]of13.Action{pushNSH, {Type: of13.ActionPushVLAN, EtherType: 0x8100}, pushEthernet, of13.Output(2)}, wrapped(frame, 3)},
		"to a type it isn't": {[]of13.Action{pushNSH, pushEthernet, {Type: of13.ActionDecap, Packet: 1<<16 | 0x0800}, pushEthernet, of13.Output(2)}, nil},
	} {
		s, r := newSwitch(t)
		must(t, s, 0, flow(0, 1, apply(c.does...)))
		s.Receive(0, 1, frame)
		switch {
		case c.want == nil && len(r.frames) == 0:
		case c.want == nil || len(r.frames) != 1 || !bytes.Equal(r.frames[0], c.want):
			t.Errorf("%s: %x left, not %x", name, r.frames, c.want)
		}
	}
}

// wrapped is a frame, or a packet behind 14 bytes that go, with a new service header.
func wrapped(frame []byte, next byte) []byte {
	if next != 3 {
		frame = frame[14:]
	}
	outer := append(make([]byte, 12), 0x89, 0x4f, 0x0f, 0xc6, 1, next, 0, 0, 0, 255)
	return append(append(outer, make([]byte, 16)...), frame...)
}

// A packet whose time along the path is over goes to controllers, and no further.
func TestServiceTimeToLive(t *testing.T) {
	s, r := newSwitch(t)
	must(t, s, 0, flow(0, 1, apply(lessNSH, of13.Output(2)), isNSH))
	frame := wrapped(udp(t, 40), 3)
	s.Receive(0, 1, frame)
	if len(r.frames) != 1 || r.frames[0][14] != 0x0f || r.frames[0][15] != 0x86 {
		t.Fatalf("%x", r.frames)
	}
	frame[14], frame[15] = 0, 0x46 // 1
	s.Receive(0, 1, frame)
	if len(r.frames) != 1 || len(r.in) != 1 || r.in[0].Reason != of13.PacketInvalidTTL {
		t.Errorf("%x, %v", r.frames, r.in)
	}
}

// What has no whole service header of a known type has no fields of one.
func TestServiceHeadersThatAreNone(t *testing.T) {
	s, r := newSwitch(t)
	must(t, s, 0, flow(0, 1, apply(of13.Output(2)), isNSH, of13.Exact(of13.NSHSI, 255)), flow(0, 0, apply(pop, pop, of13.Output(2))))
	whole := wrapped(udp(t, 40), 3)
	for name, change := range map[string]func(b []byte) []byte{
		"cut":            func(b []byte) []byte { return b[:30] },
		"version 1":      func(b []byte) []byte { b[14] |= 0x40; return b },
		"short metadata": func(b []byte) []byte { b[15]--; return b },
		"type 3":         func(b []byte) []byte { b[16] = 3; return b },
		"too long":       func(b []byte) []byte { b[15], b[16] = b[15]|63, 2; return b },
	} {
		s.Receive(0, 1, change(bytes.Clone(whole)))
		if len(r.frames) != 0 {
			t.Fatalf("%s: %x left", name, r.frames)
		}
	}
	if s.Receive(0, 1, whole); len(r.frames) != 1 {
		t.Error("a whole one did not pass")
	}
}

func TestServiceRefusals(t *testing.T) {
	for _, c := range []struct {
		m    of13.Message
		want of13.Error
	}{
		{flow(0, 1, []of13.Instruction{{Type: of13.InstructionWrite, Actions: []of13.Action{pushNSH}}}), of13.BadActionBadType},
		{&of13.GroupMod{Group: 2, Buckets: []of13.Bucket{{WatchPort: of13.PortAny, WatchGroup: of13.GroupAny, Actions: []of13.Action{pop}}}}, of13.BadActionBadType},
		{flow(0, 1, apply(of13.Action{Type: of13.ActionEncap, Packet: 1<<16 | 0x8847})), of13.BadActionBadArgument},
		{flow(0, 1, apply(of13.Action{Type: of13.ActionEncap, Packet: of13.PacketNSH, MDType: 3})), of13.BadActionBadArgument},
		{flow(0, 1, apply(lessNSH)), of13.BadActionMatchInconsistent},
		{flow(0, 1, apply(of13.SetField(of13.Exact(of13.NSHSI, 1)))), of13.BadActionMatchInconsistent},
		{flow(0, 1, apply(pop, pop, of13.SetField(of13.Exact(of13.NSHSI, 1))), isNSH), of13.BadActionMatchInconsistent},
		{flow(0, 1, apply(of13.Action{Type: of13.ActionExperimenter, Number: of13.ExperimenterNicira})), of13.BadActionBadExpType},
	} {
		s, _ := newSwitch(t)
		if _, err := s.Do(0, c.m); err != error(c.want) {
			t.Errorf("%+v: error %v instead of %v", c.m, err, c.want)
		}
	}
	s, _ := newSwitch(t)
	must(t, s, 0, flow(0, 1, apply(pop, pushNSH, of13.SetField(of13.Exact(of13.NSHSI, 1)), pushEthernet, of13.SetField(of13.Exact(of13.NSHSPI, 1)))))
}
