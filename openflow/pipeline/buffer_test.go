package pipeline

import (
	"bytes"
	"testing"

	"sublet/openflow/of13"
)

// A controller that asks for part of a packet gets its number, by which it is
// sent once: as it was received, by a packet-out or a flow-mod.
func TestPacketsAreKeptForControllers(t *testing.T) {
	s, r := newSwitch(t)
	must(t, s, 0, flow(0, 0, apply(of13.Action{Type: of13.ActionOutput, Number: of13.PortController, MaxLen: 20})))
	frame := udp(t, 100)
	s.Receive(0, 3, frame)
	s.Receive(0, 3, frame)
	first, second := r.in[0], r.in[1]
	if !bytes.Equal(first.Data, frame[:20]) || first.Total != uint16(len(frame)) || first.Buffer == second.Buffer || first.Buffer == of13.NoBuffer {
		t.Fatalf("%+v, then %+v", first, second)
	}
	must(t, s, 0, &of13.PacketOut{Buffer: first.Buffer, InPort: of13.PortController, Actions: []of13.Action{of13.Output(2)}})
	add := flow(0, 5, apply(of13.Output(1)), of13.Exact(of13.InPort, 3))
	add.Buffer = second.Buffer
	must(t, s, 0, add)
	r.expect(t, "2:0", "1:0")
	if !bytes.Equal(r.frames[0], frame) || !bytes.Equal(r.frames[1], frame) {
		t.Errorf("sent %x of %x", r.frames, frame)
	}
	again := &of13.PacketOut{Buffer: first.Buffer, InPort: of13.PortController}
	if _, err := s.Do(0, again); err != error(of13.BadRequestBufferEmpty) {
		t.Error(err)
	}
}

func TestTheLastPacketsAreKept(t *testing.T) {
	s, r := newSwitch(t)
	must(t, s, 0, flow(0, 0, apply(of13.Action{Type: of13.ActionOutput, Number: of13.PortController})))
	for range keptPackets + 1 {
		s.Receive(0, 1, udp(t, 20))
	}
	out := func(n int) error {
		_, err := s.Do(0, &of13.PacketOut{Buffer: r.in[n].Buffer, InPort: of13.PortController})
		return err
	}
	if first, second := out(0), out(1); first != error(of13.BadRequestBufferUnknown) || second != nil {
		t.Errorf("the first of %d gives %v, the second %v", len(r.in), first, second)
	}
	if len(r.in[0].Data) != 0 {
		t.Errorf("%d bytes where none were asked for", len(r.in[0].Data))
	}
}

// How much of a packet whose time to live ended is sent, a controller sets.
func TestMissSendBytes(t *testing.T) {
	s, r := newSwitch(t)
	must(t, s, 0, &of13.Config{Kind: of13.TypeSetConfig, MissSendBytes: 30},
		flow(0, 1, apply(of13.Action{Type: of13.ActionSetNWTTL, TTL: 1}, of13.Action{Type: of13.ActionDecNWTTL})))
	s.Receive(0, 1, udp(t, 100))
	if m := r.in[0]; m.Reason != of13.PacketInvalidTTL || len(m.Data) != 30 || m.Buffer == of13.NoBuffer {
		t.Errorf("%+v", m)
	}
}

// LOCAL is a port as others are, where there is one.
func TestLocalPort(t *testing.T) {
	s, r := newSwitch(t)
	s.SetPort(0, of13.Port{Number: of13.PortLocal})
	must(t, s, 0, flow(0, 1, apply(of13.Output(of13.PortLocal)), of13.Exact(of13.InPort, 1)), flow(0, 1, apply(of13.Output(1)), of13.Exact(of13.InPort, uint64(of13.PortLocal))))
	s.Receive(0, 1, udp(t, 20))
	s.Receive(0, of13.PortLocal, udp(t, 20))
	r.expect(t, "4294967294:0", "1:0")
	if list, err := s.portsOf(of13.PortAny); err != nil || list[len(list)-1].Number != of13.PortLocal {
		t.Errorf("%v, %v", list, err)
	}
}
